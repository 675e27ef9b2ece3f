package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
)

// loadCommand makes this program a client that writes to the API server, in a
// process of its own: what it uses is not the observer's.
const loadCommand = "load"

// What a load does to each bucket.
const (
	loadCreate = "create" // creates it, and no more
	loadSame   = "same"   // makes the operator's writes, one after the other
	loadBest   = "best"   // makes the fewest writes known, Secret and Service at the same time
	loadLive   = "live"   // creates it and makes the operator's writes
	loadDelete = "delete" // deletes it
)

// loadOptions are what the flags of a load say.
type loadOptions struct {
	kubeconfig, namespace, mode, sample, result string
	config                                      string // a configuration's name for the first of the buckets
	configured                                  int    // how many are the first
	workers, n                                  int
	rate                                        float64 // buckets a second; 0 is as fast as can be
}

// loadResult is what a load reports.
type loadResult struct {
	Start, End time.Time
	CPUSeconds float64
	// Due is when each bucket was to be begun with, at a rate: whoever falls
	// behind does not make waiting look short.
	Due map[string]time.Time
}

func (l *loadOptions) flagSet() *flag.FlagSet {
	flags := flag.NewFlagSet(loadCommand, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&l.kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&l.namespace, "namespace", "", "")
	flags.StringVar(&l.mode, "mode", "", "")
	flags.StringVar(&l.sample, "sample", "", "")
	flags.StringVar(&l.result, "result", "", "")
	flags.StringVar(&l.config, "config", "", "")
	flags.IntVar(&l.configured, "configured", 0, "")
	flags.IntVar(&l.workers, "workers", 0, "")
	flags.IntVar(&l.n, "n", 0, "")
	flags.Float64Var(&l.rate, "rate", 0, "")
	return flags
}

// runLoad is the process of a load.
func runLoad(ctx context.Context, args []string) error {
	var o loadOptions
	if err := o.flagSet().Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		return err
	}
	result, err := o.run(ctx, api)
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return os.WriteFile(o.result, text, 0o600)
}

func (l *loadOptions) run(ctx context.Context, api client.Client) (loadResult, error) {
	work, err := l.work(ctx, api)
	if err != nil {
		return loadResult{}, err
	}
	cpu := ownCPUSeconds()
	result := loadResult{Start: time.Now(), Due: map[string]time.Time{}}
	todo := make(chan *storagev1.StorageBucket)
	errs := make([]error, l.workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for i := range l.workers {
		workers.Go(func() {
			for bucket := range todo {
				if err := work.do(ctx, bucket); err != nil {
					errs[i] = err
					cancel()
					return
				}
			}
		})
	}
	l.hand(ctx, work.buckets, todo, result)
	workers.Wait()
	result.End, result.CPUSeconds = time.Now(), ownCPUSeconds()-cpu
	return result, errors.Join(errs...)
}

// hand hands the buckets out, each when it is due.
func (l *loadOptions) hand(ctx context.Context, buckets []*storagev1.StorageBucket, todo chan<- *storagev1.StorageBucket, result loadResult) {
	defer close(todo)
	for i, bucket := range buckets {
		if l.rate > 0 {
			due := result.Start.Add(time.Duration(float64(i) / l.rate * float64(time.Second)))
			result.Due[bucket.Name] = due
			timer := time.NewTimer(time.Until(due))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		select {
		case todo <- bucket:
		case <-ctx.Done():
			return
		}
	}
}

// ownCPUSeconds is the CPU time that this process has used.
func ownCPUSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

// loadWork is what a load does, and to which buckets.
type loadWork struct {
	buckets []*storagev1.StorageBucket
	do      func(context.Context, *storagev1.StorageBucket) error
}

func (l *loadOptions) work(ctx context.Context, api client.Client) (loadWork, error) {
	create := func(ctx context.Context, bucket *storagev1.StorageBucket) error { return api.Create(ctx, bucket) }
	if l.mode == loadCreate {
		return loadWork{buckets: l.newBuckets(), do: create}, nil
	}
	if l.mode == loadDelete {
		buckets, err := l.existing(ctx, api)
		return loadWork{buckets: buckets, do: func(ctx context.Context, bucket *storagev1.StorageBucket) error { return api.Delete(ctx, bucket) }}, err
	}
	writes, err := readSample(l.sample, api)
	if err != nil {
		return loadWork{}, err
	}
	switch l.mode {
	case loadLive:
		return loadWork{buckets: l.newBuckets(), do: func(ctx context.Context, bucket *storagev1.StorageBucket) error {
			if err := create(ctx, bucket); err != nil {
				return err
			}
			return writes.same(ctx, bucket)
		}}, nil
	case loadSame:
		buckets, err := l.existing(ctx, api)
		return loadWork{buckets: buckets, do: writes.same}, err
	case loadBest:
		buckets, err := l.existing(ctx, api)
		return loadWork{buckets: buckets, do: writes.best}, err
	}
	return loadWork{}, fmt.Errorf("there is no mode %q", l.mode)
}

func (l *loadOptions) newBuckets() []*storagev1.StorageBucket {
	buckets := make([]*storagev1.StorageBucket, l.n)
	for i := range buckets {
		buckets[i] = newBucket(l.namespace, i)
		if i < l.configured {
			buckets[i].Spec.ProviderRef = l.config
		}
	}
	return buckets
}

func (l *loadOptions) existing(ctx context.Context, api client.Client) ([]*storagev1.StorageBucket, error) {
	list := &storagev1.StorageBucketList{}
	if err := api.List(ctx, list, client.InNamespace(l.namespace)); err != nil {
		return nil, err
	}
	buckets := make([]*storagev1.StorageBucket, len(list.Items))
	for i := range list.Items {
		buckets[i] = &list.Items[i]
	}
	return buckets, nil
}
