package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"avalonhosting.example/bucketoperator/localcluster"
)

// drain is one run over a backlog: the buckets exist before the work begins.
// CPU times are in seconds, and of all buckets together.
type drain struct {
	Buckets int     `json:"buckets"`
	Seconds float64 `json:"seconds"` // until the last is seen ready
	Server  float64 `json:"serverCPUSeconds"`
	Etcd    float64 `json:"etcdCPUSeconds"`
	Client  float64 `json:"clientCPUSeconds"` // the operator's, or the limit's
	counts
}

// counts are exact.
type counts struct {
	Writes    int            `json:"writes"` // without events
	Events    int            `json:"events"`
	Conflicts int            `json:"conflicts"`
	Reads     int            `json:"reads"` // GET and LIST
	Passes    int            `json:"passes"`
	Calls     map[string]int `json:"providerCalls,omitempty"`
	Requests  map[string]int `json:"requests"`
}

func countRequests(asked requests) counts {
	return counts{
		Writes: asked.count(isWrite), Events: asked.count(isEvent), Conflicts: asked.count(isConflict), Reads: asked.count(isRead),
		Requests: asked.byKind(),
	}
}

// drainByLimit lets a bare client make the writes of the mode.
func (w *world) drainByLimit(ctx context.Context, n int, mode string) (drain, error) {
	namespace, seen, err := w.backlog(ctx, n, 0)
	if err != nil {
		return drain{}, err
	}
	defer seen.cancel()
	before, err := w.usage()
	if err != nil {
		return drain{}, err
	}
	result, err := w.load(ctx, loadOptions{namespace: namespace, mode: mode})
	if err != nil {
		return drain{}, err
	}
	ready, err := seen.waitReady(ctx, n)
	if err != nil {
		return drain{}, err
	}
	after, err := w.usage()
	if err != nil {
		return drain{}, err
	}
	asked, err := w.audit.since(ctx)
	if err != nil {
		return drain{}, err
	}
	used := after.since(before)
	return drain{
		Buckets: n, Seconds: last(ready).Sub(result.Start).Seconds(), Server: used.server, Etcd: used.etcd, Client: result.CPUSeconds,
		counts: countRequests(asked.of(w.loaders.user, namespace)),
	}, nil
}

// drainByOperator lets the operator do it. It is up before, as a standby whose
// caches are filled, so that its start is no part of the work.
func (w *world) drainByOperator(ctx context.Context, n int) (result drain, err error) {
	namespace, seen, err := w.backlog(ctx, n, 0)
	if err != nil {
		return drain{}, err
	}
	defer seen.cancel()
	o, err := w.startStandby(ctx, namespace, n)
	if err != nil {
		return drain{}, err
	}
	defer func() { err = errors.Join(err, o.program.Stop()) }()
	seen.operator = o
	work, err := w.begin(ctx, o, namespace)
	if err != nil {
		return drain{}, err
	}
	began, err := w.lead(ctx, o)
	if err != nil {
		return drain{}, err
	}
	ready, err := seen.waitReady(ctx, n)
	if err != nil {
		return drain{}, err
	}
	result, err = work.end(ctx)
	result.Buckets, result.Seconds = n, last(ready).Sub(began).Seconds()
	return result, err
}

// backlog makes a namespace with buckets that nobody works on, of which the
// first use the shared configuration, and what watches them.
func (w *world) backlog(ctx context.Context, n, sharing int) (namespace string, seen *observer, err error) {
	if namespace, err = w.namespace(ctx); err != nil {
		return "", nil, err
	}
	if err := w.configure(ctx, namespace, sharing > 0); err != nil {
		return "", nil, err
	}
	if _, err = w.load(ctx, loadOptions{namespace: namespace, mode: loadCreate, n: n, config: sharedConfig, configured: sharing}); err != nil {
		return "", nil, err
	}
	if seen, err = w.observe(ctx, namespace); err != nil {
		return "", nil, err
	}
	_, err = w.audit.since(ctx)
	return namespace, seen, err
}

// work is a piece of work of the operator, whose requests, calls and CPU time
// are counted from its begin to its end.
type work struct {
	world     *world
	operator  *operator
	namespace string
	before    usage
	metrics   metrics
}

func (w *world) begin(ctx context.Context, o *operator, namespace string) (*work, error) {
	p := &work{world: w, operator: o, namespace: namespace}
	if err := forget(ctx, w.provider); err != nil {
		return nil, err
	}
	if _, err := w.audit.since(ctx); err != nil {
		return nil, err
	}
	var err error
	if p.metrics, err = scrape(ctx, o.metrics); err != nil {
		return nil, err
	}
	p.before, err = w.usage()
	return p, err
}

// end is to be called when the work is seen to be done. It waits until the
// operator is at rest: what it does beyond the work counts, too.
func (p *work) end(ctx context.Context) (drain, error) {
	// Scrapes cost the operator time of its own: it is taken at the first.
	done, err := scrape(ctx, p.operator.metrics)
	if err != nil {
		return drain{}, err
	}
	settled, err := p.operator.settle(ctx)
	if err != nil {
		return drain{}, err
	}
	after, err := p.world.usage()
	if err != nil {
		return drain{}, err
	}
	asked, err := p.world.audit.since(ctx)
	if err != nil {
		return drain{}, err
	}
	calls, err := callsOf(ctx, p.world.provider)
	if err != nil {
		return drain{}, err
	}
	used := after.since(p.before)
	d := drain{
		Server: used.server, Etcd: used.etcd, Client: done.cpuSeconds() - p.metrics.cpuSeconds(),
		counts: countRequests(asked.of(p.world.operators.user, p.namespace)),
	}
	d.Passes, d.Calls = settled.passes()-p.metrics.passes(), calls
	return d, nil
}

// load runs a load in a process of its own.
func (w *world) load(ctx context.Context, l loadOptions) (loadResult, error) {
	program, err := w.startLoad(l)
	if err != nil {
		return loadResult{}, err
	}
	return w.endLoad(ctx, program)
}

func (w *world) startLoad(l loadOptions) (*localcluster.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return localcluster.StartProgram("the load "+l.mode, self, []string{
		loadCommand, "--kubeconfig=" + w.loaders.path, "--namespace=" + l.namespace, "--mode=" + l.mode,
		"--sample=" + w.sample, "--result=" + w.file("load.json"), "--workers=" + strconv.Itoa(w.workers), "--n=" + strconv.Itoa(l.n),
		"--config=" + l.config, "--configured=" + strconv.Itoa(l.configured), "--rate=" + strconv.FormatFloat(l.rate, 'f', -1, 64),
	}, w.log("load"))
}

func (w *world) endLoad(ctx context.Context, program *localcluster.Program) (loadResult, error) {
	select {
	case <-program.Ended():
	case <-ctx.Done():
		return loadResult{}, errors.Join(context.Cause(ctx), program.Stop())
	}
	var result loadResult
	text, err := os.ReadFile(w.file("load.json"))
	if err != nil {
		return loadResult{}, fmt.Errorf("running a load: %w; %w", program.Err(), err)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return loadResult{}, fmt.Errorf("reading what a load reports: %w", err)
	}
	return result, os.Remove(w.file("load.json"))
}

// latencies are how long each bucket took from when it was due until it was
// seen ready.
func latencies(due, ready map[string]time.Time) []float64 {
	var seconds []float64
	for name, at := range ready {
		if began, ok := due[name]; ok {
			seconds = append(seconds, at.Sub(began).Seconds())
		}
	}
	return seconds
}
