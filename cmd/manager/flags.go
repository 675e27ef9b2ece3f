package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// options are what the flags say.
type options struct {
	version bool
	log     *zap.Options

	controllers    []string
	namespaces     []string
	maxConcurrent  int
	resyncInterval time.Duration

	defaultEndpoint string
	allowLoopback   bool

	leader   leaderOptions
	metrics  metricsOptions
	probes   string
	shutdown time.Duration
}

// parseFlags reads and checks the flags. Help goes to help; errors are for the
// caller to report, once.
func parseFlags(args []string, help io.Writer) (options, error) {
	logOptions := logDefaults()
	o := options{log: &logOptions}
	flags := o.flagSet()
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: all settings are flags", flags.Arg(0))
	}
	if o.version {
		return o, nil
	}
	return o, o.validate()
}

func (o *options) flagSet() *flag.FlagSet {
	flags := flag.NewFlagSet("bucketoperator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	config.RegisterFlags(flags) // --kubeconfig
	o.log.BindFlags(flags)
	o.leader.addFlags(flags)
	o.metrics.addFlags(flags)

	o.controllers = operator.Names(controllers.Definitions)
	flags.Func("controllers", "`names` of the controllers to run, with commas between: "+strings.Join(o.controllers, ", ")+" (default all)",
		listFlag(&o.controllers))
	flags.Func("namespaces", "`names` of the namespaces to work in, with commas between (default all)", listFlag(&o.namespaces))
	flags.IntVar(&o.maxConcurrent, "max-concurrent-reconciles", 8, "how many objects of a kind are worked on at once, a quarter of them in one namespace; those that wait for an answer from outside the cluster come on top")
	flags.DurationVar(&o.resyncInterval, "resync-interval", 10*time.Minute, "how often an object is compared with what is outside the cluster; a BucketProviderConfig may say otherwise for its buckets")
	flags.StringVar(&o.defaultEndpoint, "default-provider-endpoint", "", "`URL` of the provider of buckets that name none, in namespaces without a BucketProviderConfig called default")
	flags.BoolVar(&o.allowLoopback, "allow-loopback-endpoints", false, "let BucketProviderConfigs name loopback endpoints: for development only")
	flags.StringVar(&o.probes, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 for none")
	flags.DurationVar(&o.shutdown, "graceful-shutdown-timeout", 25*time.Second, "how long work under way may take to end after SIGTERM; keep it below the pod's terminationGracePeriodSeconds")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	return flags
}

// listFlag reads a list with commas between; the last one given counts.
func listFlag(into *[]string) func(string) error {
	return func(value string) error {
		var list []string
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item == "" {
				return errors.New("a name is empty")
			}
			list = append(list, item)
		}
		*into = list
		return nil
	}
}
