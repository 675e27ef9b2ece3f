package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// options are what the flags say.
type options struct {
	sizes   []int
	workers int
	pairs   int
	live    int
	tenants bool
	idle    time.Duration
	latency time.Duration
	qps     int
	fsync   bool
	json    string
	logs    string
	budget  time.Duration

	progress io.Writer
}

func parseFlags(args []string, help io.Writer) (options, error) {
	o := options{sizes: []int{100, 1000}}
	quick := false
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Func("n", "how many buckets: `numbers` with commas between; empty for none (default 100,1000)", func(value string) error {
		o.sizes = nil
		if value == "" {
			return nil
		}
		for item := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(item))
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of buckets", item)
			}
			o.sizes = append(o.sizes, n)
		}
		return nil
	})
	flags.IntVar(&o.workers, "workers", 16, "workers of the limit's clients, and --max-concurrent-reconciles of the operator")
	flags.IntVar(&o.pairs, "pairs", 7, "how many blocks of limit, operator, operator, limit; see -budget")
	flags.IntVar(&o.live, "live", 500, "how many buckets the live mode makes, at most as many as -n has; 0 leaves it out")
	flags.BoolVar(&o.tenants, "tenants", true, "measure a namespace beside the load of another one, with the number of workers that the operator has by default")
	flags.DurationVar(&o.idle, "idle", 30*time.Second, "how long the quiet time is")
	flags.DurationVar(&o.latency, "latency", 0, "how long each call to the provider takes")
	flags.IntVar(&o.qps, "provider-qps", 10000, "rate limit of the provider's configuration, in calls a second; 0 uses the operator's default endpoint with its default limit")
	flags.BoolVar(&o.fsync, "fsync", false, "let etcd wait for the disk on each write, as in production")
	flags.StringVar(&o.json, "json", "bin/bench.json", "`file` for the figures; empty for none")
	flags.StringVar(&o.logs, "logs", "", "`folder` that keeps the logs, the audit log above all; empty keeps none")
	flags.DurationVar(&o.budget, "budget", 4*time.Minute, "how long the blocks of a size may take: no more are begun after that, but 2 in any case")
	flags.BoolVar(&quick, "quick", false, "the size for CI: -n 100 -pairs 2 -live 100 -idle 5s -tenants=false; only counts mean anything")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return options{}, err
	}
	if quick {
		o.sizes, o.pairs, o.live, o.idle, o.tenants = []int{100}, 2, 100, 5*time.Second, false
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.workers < 1, o.pairs < 1, o.live < 0, o.idle < 0, o.latency < 0, o.qps < 0, o.budget < 0:
		return options{}, errors.New("a number is below what makes sense")
	}
	return o, nil
}
