package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// size is what was measured with a number of buckets.
type size struct {
	N          int        `json:"n"`
	Comparison comparison `json:"comparison"`
	Blocks     []block    `json:"blocks"`
	Life       life       `json:"life"`
	Live       *live      `json:"live,omitempty"`
}

// measure measures all.
func (w *world) measure(ctx context.Context) (*report, error) {
	w.say("Taking a sample of what the operator writes")
	emptyHeap, err := w.prepare(ctx)
	if err != nil {
		return nil, err
	}
	r := &report{Workers: w.workers, Latency: w.latency.String(), Fsync: w.fsync, ProviderQPS: w.qps, EmptyHeap: emptyHeap}
	for _, n := range w.sizes {
		s, err := w.measureSize(ctx, n, emptyHeap)
		if err != nil {
			return nil, err
		}
		r.Sizes = append(r.Sizes, s)
	}
	if w.tenants {
		if r.Tenants, err = w.tenantsRun(ctx); err != nil {
			return nil, err
		}
	}
	r.judge()
	return r, nil
}

// prepare has the operator make one bucket, as the sample of what the limit
// writes. It returns the operator's heap then.
func (w *world) prepare(ctx context.Context) (heap float64, err error) {
	namespace, seen, err := w.backlog(ctx, 1, 0)
	if err != nil {
		return 0, err
	}
	defer seen.cancel()
	o, err := w.startStandby(ctx, namespace, 1)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, o.program.Stop()) }()
	seen.operator = o
	if _, err := w.lead(ctx, o); err != nil {
		return 0, err
	}
	if _, err := seen.waitReady(ctx, 1); err != nil {
		return 0, err
	}
	if err := w.takeSample(ctx, types.NamespacedName{Namespace: namespace, Name: newBucket(namespace, 0).Name}); err != nil {
		return 0, err
	}
	return o.heap(ctx)
}

// minBlocks are made however long they take.
const minBlocks = 2

func (w *world) measureSize(ctx context.Context, n int, emptyHeap float64) (s size, err error) {
	s.N = n
	began := time.Now()
	for i := range w.pairs {
		if i >= minBlocks && time.Since(began) > w.budget {
			w.say("%d buckets: the time for blocks is up", n)
			break
		}
		b, err := w.block(ctx, n)
		if err != nil {
			return s, err
		}
		s.Blocks = append(s.Blocks, b)
		w.say("%d buckets, block %d of %d: %.2f of the limit's rate, writes %d and %d, passes %d and %d, dropped: %t", n, i+1, w.pairs,
			sum(b.Limits, seconds)/sum(b.Operators, seconds), b.Operators[0].Writes, b.Operators[1].Writes,
			b.Operators[0].Passes, b.Operators[1].Passes, b.Dropped)
	}
	s.Comparison = compare(n, s.Blocks)
	if made := min(n, w.live); made > 0 && n == w.largest() {
		rate := s.Comparison.LimitRate / 2
		w.say("%d buckets at half the limit's rate, %.0f a second", made, rate)
		l, err := w.liveRun(ctx, made, rate)
		if err != nil {
			return s, err
		}
		s.Live = &l
	}
	w.say("%d buckets: quiet, restart, change of a Secret, delete", n)
	s.Life, err = w.life(ctx, n, emptyHeap)
	return s, err
}

func (w *world) largest() int {
	largest := 0
	for _, n := range w.sizes {
		largest = max(largest, n)
	}
	return largest
}
