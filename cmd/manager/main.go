// Command manager is the operator. See docs/manager.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/KimMachineGun/automemlimit/memlimit"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments; it returns the exit code.
// Whatever goes wrong is told in one line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "bucketoperator: %v; see --help\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintln(stdout, versionLine())
		return 0
	}
	if err := operate(ctx, o); err != nil {
		fmt.Fprintf(stderr, "bucketoperator: %v\n", err)
		return exitFailure
	}
	return 0
}

// operate runs the operator until ctx ends, or its lease is lost.
func operate(ctx context.Context, o options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w; give --kubeconfig, or set KUBECONFIG", err)
	}
	// No limit on the client's side: the API server's priority and fairness
	// shares its power out better than each client on its own, and a queue in
	// here would delay the renewal of the lease, too.
	config.QPS = -1

	setLoggers(o.log)
	// So that garbage is collected before the kernel ends the process.
	if _, err := memlimit.Set(); err != nil {
		ctrl.Log.V(1).Info("The memory limit of the container is not known: set GOMEMLIMIT if there is one", "error", err.Error())
	}
	if o.namespaces, err = preflight(ctx, config, o); err != nil {
		return err
	}
	mgr, err := newManager(ctx, config, o)
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}
