// Command bench measures the operator against a limit: a bare client that makes
// the same writes to the same API server, and nothing else. docs/performance.md
// tells what is measured, how, and what came out. `make bench` runs it.
//
// It exits with 1 when a count (writes, passes, conflicts, calls) is over its
// target, or when it could not be run to its end. Times never fail it: they are
// the machine's as much as the operator's.
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

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // a second signal ends this process at once, and its children with it
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	log.SetLogger(logr.Discard()) // clients complain without one
	if len(args) > 0 && args[0] == loadCommand {
		if err := runLoad(ctx, args[1:]); err != nil {
			fmt.Fprintf(stderr, "bench load: %v\n", err)
			return exitFailure
		}
		return 0
	}
	o, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "bench: %v; see bench -h\n", err)
		return exitUsage
	}
	o.progress = stderr
	over, err := bench(ctx, o, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return exitFailure
	}
	if over > 0 {
		fmt.Fprintf(stderr, "bench: %d counts are over their targets\n", over)
		return exitFailure
	}
	return 0
}

// bench measures, prints the table and writes the JSON. over is how many counts
// are over their targets.
func bench(ctx context.Context, o options, stdout io.Writer) (over int, err error) {
	w, err := newWorld(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	report, err := w.measure(ctx)
	if err != nil {
		return 0, err
	}
	if err := report.print(stdout); err != nil {
		return 0, err
	}
	if err := report.save(o.json); err != nil {
		return 0, err
	}
	return len(report.Over), nil
}
