package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"avalonhosting.example/bucketoperator/localcluster"
)

// options are what the flags say, and where to write.
type options struct {
	root          string // the checkout
	dir           string // the folder of all that is made, an absolute path
	keep          bool
	minimal       bool
	activateAfter time.Duration

	stdout, stderr io.Writer
}

func parseFlags(command string, args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("quickstart "+command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.dir, "dir", "", "`folder` for all that is made (default bin/quickstart in the checkout)")
	flags.BoolVar(&o.keep, "keep", false, "leave the folder, with logs and data, at the end")
	flags.BoolVar(&o.minimal, "minimal-provider", false, "use a provider that knows only POST, GET and DELETE, and ignores idempotency keys")
	flags.DurationVar(&o.activateAfter, "activate-after", 5*time.Second, "how long the provider takes to make a bucket")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.activateAfter < 0 {
		return options{}, errors.New("--activate-after cannot be below 0")
	}
	var err error
	if o.root, err = localcluster.ModuleRoot(); err != nil {
		return options{}, err
	}
	if o.dir == "" {
		o.dir = filepath.Join(o.root, "bin", "quickstart")
	}
	o.dir, err = filepath.Abs(o.dir)
	return o, err
}
