package main

import (
	"context"
	"errors"
	"fmt"
)

// live is how long buckets take to be ready that are made at half the limit's
// rate, one after the other, whether or not the last is ready. In seconds from
// when each was due to be created.
type live struct {
	Buckets  int     `json:"buckets"`
	Rate     float64 `json:"rate"` // buckets a second
	Limit    waits   `json:"limit"`
	Operator waits   `json:"operator"`
	// BesideDead is that of good buckets beside some whose provider hangs.
	BesideDead waits `json:"operatorBesideDeadProvider"`
	Dead       int   `json:"bucketsOfTheDeadProvider"`
}

type waits struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// deadPerWorker is how many buckets of the dead provider there are for each
// worker of the operator: enough to hold them all, if nothing prevents that.
const deadPerWorker = 4

func (w *world) liveRun(ctx context.Context, n int, rate float64) (l live, err error) {
	l = live{Buckets: n, Rate: rate, Dead: deadPerWorker * w.workers}
	if l.Limit, err = w.liveByLimit(ctx, n, rate); err != nil {
		return l, err
	}
	if l.Operator, err = w.liveByOperator(ctx, n, rate, 0); err != nil {
		return l, err
	}
	l.BesideDead, err = w.liveByOperator(ctx, n, rate, l.Dead)
	return l, err
}

func (w *world) liveByLimit(ctx context.Context, n int, rate float64) (waits, error) {
	namespace, seen, err := w.backlog(ctx, 0, 0)
	if err != nil {
		return waits{}, err
	}
	defer seen.cancel()
	return w.waits(ctx, seen, loadOptions{namespace: namespace, mode: loadLive, n: n, rate: rate})
}

func (w *world) liveByOperator(ctx context.Context, n int, rate float64, dead int) (result waits, err error) {
	namespace, seen, err := w.backlog(ctx, 0, 0)
	if err != nil {
		return waits{}, err
	}
	defer seen.cancel()
	if err := w.addDead(ctx, namespace, dead); err != nil {
		return waits{}, err
	}
	o, err := w.startStandby(ctx, namespace, dead)
	if err != nil {
		return waits{}, err
	}
	defer func() { err = errors.Join(err, o.program.Stop()) }()
	seen.operator = o
	if _, err := w.lead(ctx, o); err != nil {
		return waits{}, err
	}
	if dead > 0 {
		err := o.until(ctx, "it to call the dead provider", func(ctx context.Context) (bool, error) {
			calls, err := callsOf(ctx, w.dead)
			return calls["Create"] > 0, err
		})
		if err != nil {
			return waits{}, err
		}
	}
	return w.waits(ctx, seen, loadOptions{namespace: namespace, mode: loadCreate, n: n, rate: rate})
}

// addDead adds buckets whose provider never answers.
func (w *world) addDead(ctx context.Context, namespace string, n int) error {
	if n == 0 {
		return nil
	}
	if err := forget(ctx, w.dead); err != nil {
		return err
	}
	if err := w.admin.Create(ctx, w.config(namespace, deadConfig, w.dead)); err != nil {
		return fmt.Errorf("configuring the dead provider: %w", err)
	}
	for i := range n {
		bucket := newBucket(namespace, i)
		bucket.Name, bucket.Spec.ProviderRef = "dead-"+bucket.Name, deadConfig
		if err := w.admin.Create(ctx, bucket); err != nil {
			return fmt.Errorf("making a bucket of the dead provider: %w", err)
		}
	}
	return nil
}

// waits makes buckets at a rate, and says how long they took.
func (w *world) waits(ctx context.Context, seen *observer, l loadOptions) (waits, error) {
	made, err := w.load(ctx, l)
	if err != nil {
		return waits{}, err
	}
	ready, err := seen.waitReady(ctx, l.n)
	if err != nil {
		return waits{}, err
	}
	took := latencies(made.Due, ready)
	return waits{P50: percentile(took, 0.50), P99: percentile(took, 0.99)}, nil
}
