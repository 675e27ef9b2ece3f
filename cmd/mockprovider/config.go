package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// config is what the flags say.
type config struct {
	listen      string
	adminListen string
	options     mockprovider.Options
}

// parse reads the flags, and the file of API keys if one is named.
func parse(args []string, help io.Writer) (config, error) {
	var c config
	var regions, keyFile string
	flags := flag.NewFlagSet("mockprovider", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are reported once, by the caller
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8080", "`address` of the protocol; port 0 takes a free one")
	flags.StringVar(&c.adminListen, "admin-listen", "", "`address` of /_mock/, which makes faults on demand and asks for no token; empty means none")
	flags.DurationVar(&c.options.ActivateAfter, "activate-after", 5*time.Second, "how long a new bucket stays Provisioning")
	flags.StringVar(&c.options.File, "file", "", "`file` that keeps the buckets; empty means in memory only")
	flags.StringVar(&regions, "regions", strings.Join(mockprovider.DefaultRegions, ","), "`regions` that are taken, with commas between")
	flags.StringVar(&keyFile, "api-key-file", "", "`file` of API keys that are taken, one a line, each with its account after a space if there are several; empty means that none is needed")
	flags.BoolVar(&c.options.Minimal, "minimal", false, "know only POST, GET and DELETE, and ignore all but the region")
	flags.Func("size-step", "round sizes up to a multiple of this many `GB`", func(s string) error {
		step, err := strconv.ParseInt(s, 10, 32)
		if err != nil || step < 1 {
			return errors.New("it must be a number of GB above 0")
		}
		c.options.SizeStep = int32(step)
		return nil
	})
	flags.DurationVar(&c.options.Latency, "latency", 0, "how long each call takes at least")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if c.options.ActivateAfter < 0 || c.options.Latency < 0 {
		return config{}, errors.New("--activate-after and --latency cannot be below 0")
	}
	for region := range strings.SplitSeq(regions, ",") {
		if region = strings.TrimSpace(region); region != "" {
			c.options.Regions = append(c.options.Regions, region)
		}
	}
	if len(c.options.Regions) == 0 {
		return config{}, errors.New("--regions names none")
	}
	if keyFile != "" {
		keys, err := readKeys(keyFile)
		if err != nil {
			return config{}, fmt.Errorf("--api-key-file: %w", err)
		}
		c.options.APIKeys = keys
	}
	return c, nil
}

// readKeys reads the API keys and the account of each. Errors do not repeat them.
func readKeys(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	keys := map[string]string{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		fields := strings.Fields(line)
		switch len(fields) {
		case 0:
		case 1:
			keys[fields[0]] = "default"
		case 2:
			keys[fields[0]] = fields[1]
		default:
			return nil, fmt.Errorf("line %d of %s is not a key, or a key and an account", n, file)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s holds no key", file)
	}
	return keys, nil
}
