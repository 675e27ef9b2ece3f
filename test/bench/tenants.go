package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/programs"
)

// tenants is how long the buckets of one namespace take to be ready beside the
// load of another, all in one run.
type tenants struct {
	Buckets int     `json:"buckets"`
	Rate    float64 `json:"rate"` // buckets a second
	// Alone is without any load, before and after all others.
	Alone [2]waits `json:"alone"`
	// Beside is with a load, in the order of neighbours.
	Beside []waits `json:"beside"`
}

const (
	// tenantBuckets are made by the namespace that is measured, at tenantRate a second.
	tenantBuckets = 100
	tenantRate    = 10
	// tenantWorkers are as many as the operator has by default.
	tenantWorkers = 8
	// slowAnswer is how long the slow provider takes: less than a call may.
	slowAnswer = 9 * time.Second
)

// neighbour is the load of the other namespace.
type neighbour struct {
	name string
	// configs are how many configurations it has, buckets how many each of them.
	configs, buckets int
	// provider is where the configurations lead.
	provider func(*world) *programs.Provider
	// resync is the interval of resyncs; settled waits until all are ready first.
	resync  time.Duration
	settled bool
}

var neighbours = []neighbour{
	{name: "2 providers that answer after 9 s, 50 buckets each", configs: 2, buckets: 50, provider: slowProvider},
	{name: "3 such providers, 50 buckets each", configs: 3, buckets: 50, provider: slowProvider},
	{name: "100 such providers, 2 buckets each", configs: 100, buckets: 2, provider: slowProvider},
	{name: "20 providers that never answer, 4 buckets each", configs: 20, buckets: 4, provider: deadProvider},
	{name: "2,000 buckets at once, of a quick provider", configs: 1, buckets: 2000, provider: quickProvider},
	{name: "500 buckets that are compared each second", configs: 1, buckets: 500, provider: quickProvider, resync: time.Second, settled: true},
}

func slowProvider(w *world) *programs.Provider  { return w.slow }
func deadProvider(w *world) *programs.Provider  { return w.dead }
func quickProvider(w *world) *programs.Provider { return w.provider }

// tenantsRun measures a namespace alone, beside each neighbour, and alone again.
func (w *world) tenantsRun(ctx context.Context) (t *tenants, err error) {
	if w.slow, err = w.startProvider(ctx, "slow-provider", "--latency="+slowAnswer.String()); err != nil {
		return nil, err
	}
	t = &tenants{Buckets: tenantBuckets, Rate: tenantRate}
	if t.Alone[0], err = w.beside(ctx, neighbour{}); err != nil {
		return nil, err
	}
	for _, n := range neighbours {
		w.say("A namespace beside one with %s", n.name)
		took, err := w.beside(ctx, n)
		if err != nil {
			return nil, err
		}
		t.Beside = append(t.Beside, took)
	}
	t.Alone[1], err = w.beside(ctx, neighbour{})
	return t, err
}

// beside is how long the buckets of one namespace take beside a neighbour.
func (w *world) beside(ctx context.Context, n neighbour) (result waits, err error) {
	good, seen, err := w.backlog(ctx, 0, 0)
	if err != nil {
		return waits{}, err
	}
	defer seen.cancel()
	other, others, err := w.backlog(ctx, 0, 0)
	if err != nil {
		return waits{}, err
	}
	defer others.cancel()
	o, err := w.startStandby(ctx, good+","+other, 0, "--max-concurrent-reconciles="+strconv.Itoa(tenantWorkers))
	if err != nil {
		return waits{}, err
	}
	defer func() { err = errors.Join(err, o.program.Stop()) }()
	seen.operator, others.operator = o, o
	if _, err := w.lead(ctx, o); err != nil {
		return waits{}, err
	}
	if err := w.settle(ctx, other, n); err != nil {
		return waits{}, err
	}
	if n.settled {
		if _, err := others.waitReady(ctx, n.configs*n.buckets); err != nil {
			return waits{}, err
		}
	}
	return w.waits(ctx, seen, loadOptions{namespace: good, mode: loadCreate, n: tenantBuckets, rate: tenantRate})
}

// settle makes all that a neighbour has.
func (w *world) settle(ctx context.Context, namespace string, n neighbour) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(w.workers)
	create := func(object client.Object) {
		group.Go(func() error {
			if err := w.admin.Create(ctx, object); err != nil {
				return fmt.Errorf("making the load of another namespace: %w", err)
			}
			return nil
		})
	}
	for c := range n.configs {
		config := w.config(namespace, fmt.Sprintf("other-%d", c), n.provider(w))
		if n.resync > 0 {
			config.Spec.ResyncInterval = &metav1.Duration{Duration: n.resync}
		}
		create(config)
		for b := range n.buckets {
			bucket := newBucket(namespace, b)
			bucket.Name, bucket.Spec.ProviderRef = fmt.Sprintf("%s-of-%d", bucket.Name, c), config.Name
			create(bucket)
		}
	}
	return group.Wait()
}

// lines are the table of what was measured.
func (t *tenants) lines() [][3]string {
	baseline := max(t.Alone[0].P99, t.Alone[1].P99)
	lines := [][3]string{
		{"alone, before and after", t.Alone[0].String() + "; " + t.Alone[1].String(), ""},
	}
	for i, n := range neighbours {
		lines = append(lines, [3]string{n.name, t.Beside[i].String(), ratio(t.Beside[i].P99, baseline)})
	}
	return lines
}
