package main

import (
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"

	"avalonhosting.example/bucketoperator/localcluster"
)

// newFlags are the flags that up and exec share; they fill the options returned.
// With workloads, the cluster does by default all that it can without nodes.
func newFlags(command string, workloads bool, stderr io.Writer) (*flag.FlagSet, *clusterFlags) {
	f := &clusterFlags{opts: localcluster.Options{Progress: stderr}}
	flags := flag.NewFlagSet("localcluster "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&f.opts.Dir, "dir", "", "`folder` for data and logs, kept at the end (default: a temporary one, removed at the end)")
	flags.Func("crds", "`path` of a CRD file, or of a folder of them, to install; may be repeated (default: those of this project)", func(path string) error {
		f.opts.CRDs = append(f.opts.CRDs, path)
		return nil
	})
	flags.BoolVar(&f.workloads, "workloads", workloads, "run the scheduler and all controllers, not only those that tests need")
	flags.StringVar(&f.opts.AuditLog, "audit-log", "", "`file` to log all API requests to")
	flags.StringVar(&f.opts.AuditPolicy, "audit-policy", "", "`file` with the policy of the audit log (default: metadata of every request)")
	flags.BoolVar(&f.opts.Fsync, "fsync", false, "make etcd wait for the disk on every write")
	return flags, f
}

type clusterFlags struct {
	opts      localcluster.Options
	workloads bool
}

// parse returns the options that args ask for, with this project's CRDs as the
// default if there are any yet.
func (f *clusterFlags) parse(flags *flag.FlagSet, args []string) (localcluster.Options, error) {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return localcluster.Options{}, err
		}
		return localcluster.Options{}, usageError{err.Error()}
	}
	opts := f.opts
	if f.workloads {
		opts.Scheduler = true
		opts.Controllers = []string{"*"}
	}
	if len(opts.CRDs) == 0 {
		crds, err := projectCRDs()
		if err != nil {
			return localcluster.Options{}, err
		}
		opts.CRDs = crds
	}
	return opts, nil
}

func projectCRDs() ([]string, error) {
	dir, err := localcluster.ProjectCRDs()
	if err != nil {
		// Ready-made programs do not need the project's source.
		if os.Getenv(localcluster.AssetsEnv) != "" {
			return nil, nil
		}
		return nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return []string{dir}, nil
}
