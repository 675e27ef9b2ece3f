// Command mockprovider serves a bucket provider for tests and demonstrations.
// See docs/http-provider.md.
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	config, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "mockprovider: %v; try --help\n", err)
		return 2
	}
	if err := serve(ctx, config, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "mockprovider: %v\n", err)
		return 1
	}
	return 0
}
