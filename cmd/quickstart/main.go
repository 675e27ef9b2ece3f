// Command quickstart runs the operator on this machine, with a control plane
// and a bucket provider of its own: `make run` and `make demo`.
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
)

const usage = `usage:
  quickstart run [FLAGS]     start it all, with a sample bucket, and keep it until Ctrl-C
  quickstart demo [FLAGS]    start it all, and walk a bucket through its life

"quickstart run -h" lists the flags.
`

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, cancel) // a second signal ends this process at once
	ctx, abandon := context.WithCancelCause(ctx)
	go watchParent(ctx, abandon)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	var after func(context.Context, *stack) error
	switch args[0] {
	case "run":
		after = stay
	case "demo":
		after = demo
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	default:
		fmt.Fprintf(stderr, "quickstart: unknown command %q: want run or demo\n", args[0])
		return exitUsage
	}
	o, err := parseFlags(args[0], args[1:], stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "quickstart: %v; see quickstart %s -h\n", err, args[0])
		return exitUsage
	}
	o.stdout, o.stderr = stdout, stderr
	if err := withStack(ctx, o, after); err != nil {
		fmt.Fprintf(stderr, "quickstart: %v\n", err)
		return exitFailure
	}
	return 0
}
