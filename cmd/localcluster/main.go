// Command localcluster runs a local Kubernetes control plane: see
// docs/local-cluster.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"avalonhosting.example/bucketoperator/localcluster"
)

const usage = `usage:
  localcluster up [FLAGS]                     start a cluster and keep it until Ctrl-C
  localcluster exec [FLAGS] -- COMMAND...     run a command with a cluster of its own
  localcluster build                          build the Kubernetes programs, start nothing

With a real node, on which pods run (Linux, as root):
  localcluster node up [FLAGS]                start a cluster of one node and keep it until Ctrl-C
  localcluster node exec [FLAGS] -- COMMAND...  run a command inside a node of its own
  localcluster node build                     build the programs of a node, start nothing

"localcluster up -h" and so on list the flags.
`

// Exit codes; exec otherwise exits with its command's.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	nodeInside()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	// All that is interrupted stops its cluster before it returns.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	var code int
	var err error
	switch command, rest := args[0], args[1:]; command {
	case "up":
		err = up(ctx, rest, stdout, stderr)
	case "exec":
		code, err = execute(ctx, rest, stderr)
	case "build":
		err = build(ctx, rest, stdout, stderr)
	case "node":
		code, err = runNode(ctx, rest, stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
	default:
		err = usageError{fmt.Sprintf("unknown command %q: want up, exec, build or node", command)}
	}
	return exitCode(code, err, stderr)
}

// usageError is a mistake on the command line.
type usageError struct{ message string }

func (e usageError) Error() string { return e.message }

func exitCode(code int, err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return code
	case errors.Is(err, flag.ErrHelp):
		return 0 // the flag package has printed it
	}
	fmt.Fprintln(stderr, "localcluster:", err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

func build(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		return usageError{"build takes no arguments"}
	}
	assets, err := localcluster.Binaries(ctx, stderr)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, assets.Dir)
	return err
}
