package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"avalonhosting.example/bucketoperator/localcluster"
)

// up starts a cluster and stops it when ctx ends, which is no failure.
func up(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags, shared := newFlags("up", true, stderr)
	kubeconfig := flags.String("kubeconfig", "", "write the kubeconfig to this `file`, too; it is left there")
	opts, err := shared.parse(flags, args)
	if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Sprintf("up takes no arguments, but got %q", flags.Args())}
	}

	cluster, err := localcluster.Start(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	file := cluster.Kubeconfig()
	if *kubeconfig != "" {
		file = *kubeconfig
		if err := cluster.WriteKubeconfig(file); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "The cluster is up; Ctrl-C stops it. Use it in another terminal by:\n  export KUBECONFIG=%q PATH=%q:\"$PATH\"\nLogs are in %s/logs.\n",
		file, cluster.Assets().Dir, cluster.Dir())
	if err := cluster.Wait(ctx); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "localcluster: stopping")
	return nil
}
