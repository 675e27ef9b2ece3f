package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// life is what becomes of buckets after they were made.
type life struct {
	Create        drain   `json:"create"`
	HeapPerObject float64 `json:"heapBytesPerBucket"` // with what it owns
	Resident      float64 `json:"residentBytes"`
	Idle          quiet   `json:"idle"`
	Restart       restart `json:"restart"`
	Sharing       int     `json:"bucketsOfTheSecret"`
	Secret        drain   `json:"secretChange"`
	Delete        drain   `json:"delete"`
}

// quiet is a time in which nothing is to be done. Its requests are those of the
// whole process, the lease's too.
type quiet struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"clientCPUSeconds"`
	counts
}

// restart is a start with settled buckets.
type restart struct {
	Ready   float64 `json:"readySeconds"`   // until /readyz
	Settled float64 `json:"settledSeconds"` // until a pass was made over each
	Lists   float64 `json:"listsSeconds"`   // what a bare LIST of all of it takes
	CPU     float64 `json:"clientCPUSeconds"`
	counts
}

// maxSharing is how many buckets use the Secret that changes.
const maxSharing = 100

func (w *world) life(ctx context.Context, n int, emptyHeap float64) (l life, err error) {
	l.Sharing = min(maxSharing, max(1, n/10))
	namespace, seen, err := w.backlog(ctx, n, l.Sharing)
	if err != nil {
		return l, err
	}
	defer seen.cancel()
	o, err := w.startStandby(ctx, namespace, n)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, o.program.Stop()) }()
	seen.operator = o
	if l.Create, err = w.createAll(ctx, o, namespace, seen, n); err != nil {
		return l, err
	}
	heap, err := o.heap(ctx)
	if err != nil {
		return l, err
	}
	l.HeapPerObject = (heap - emptyHeap) / float64(n)
	if l.Idle, err = w.idle(ctx, o, namespace); err != nil {
		return l, err
	}
	if err := o.program.Stop(); err != nil {
		return l, err
	}
	if l.Restart, err = w.restart(ctx, &o, namespace, n); err != nil {
		return l, err
	}
	seen.operator = o
	m, err := scrape(ctx, o.metrics)
	if err != nil {
		return l, err
	}
	l.Resident = m.residentSize()
	if l.Secret, err = w.secretChange(ctx, o, namespace, l.Sharing); err != nil {
		return l, err
	}
	l.Delete, err = w.deleteAll(ctx, o, namespace, seen, n)
	return l, err
}

func (w *world) createAll(ctx context.Context, o *operator, namespace string, seen *observer, n int) (drain, error) {
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
	d, err := work.end(ctx)
	d.Buckets, d.Seconds = n, last(ready).Sub(began).Seconds()
	return d, err
}

func (w *world) idle(ctx context.Context, o *operator, namespace string) (quiet, error) {
	work, err := w.begin(ctx, o, namespace)
	if err != nil {
		return quiet{}, err
	}
	timer := time.NewTimer(w.options.idle)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return quiet{}, context.Cause(ctx)
	}
	// Asked for directly: end would wait for a rest that is already there.
	asked, err := w.audit.since(ctx)
	if err != nil {
		return quiet{}, err
	}
	now, err := scrape(ctx, o.metrics)
	if err != nil {
		return quiet{}, err
	}
	calls, err := callsOf(ctx, w.provider)
	if err != nil {
		return quiet{}, err
	}
	q := quiet{Seconds: w.options.idle.Seconds(), CPU: now.cpuSeconds() - work.metrics.cpuSeconds(), counts: countRequests(asked.of(w.operators.user, namespace))}
	q.Passes, q.Calls = now.passes()-work.metrics.passes(), calls
	q.Requests = asked.of(w.operators.user, "").byKind()
	return q, nil
}

// restart starts the operator again. o becomes the new one.
func (w *world) restart(ctx context.Context, o **operator, namespace string, n int) (r restart, err error) {
	if r.Lists, err = w.lists(ctx, namespace); err != nil {
		return r, err
	}
	if err := forget(ctx, w.provider); err != nil {
		return r, err
	}
	if _, err := w.audit.since(ctx); err != nil {
		return r, err
	}
	began := time.Now()
	again, err := w.startOperator(ctx, namespace)
	if err != nil {
		return r, err
	}
	*o = again
	err = again.until(ctx, "its caches to be filled", func(ctx context.Context) (bool, error) { return again.isReady(ctx), nil })
	if err != nil {
		return r, err
	}
	r.Ready = time.Since(began).Seconds()
	err = again.until(ctx, "a pass over each bucket", func(ctx context.Context) (bool, error) {
		m, err := scrape(ctx, again.metrics)
		return err == nil && m.passes() >= n, nil
	})
	if err != nil {
		return r, err
	}
	r.Settled = time.Since(began).Seconds()
	m, err := again.settle(ctx)
	if err != nil {
		return r, err
	}
	asked, err := w.audit.since(ctx)
	if err != nil {
		return r, err
	}
	calls, err := callsOf(ctx, w.provider)
	if err != nil {
		return r, err
	}
	r.counts = countRequests(asked.of(w.operators.user, namespace))
	r.Passes, r.Calls, r.CPU = m.passes(), calls, m.cpuSeconds()
	return r, nil
}

// lists is how long it takes to list all that the operator has to.
func (w *world) lists(ctx context.Context, namespace string) (float64, error) {
	began := time.Now()
	for _, list := range []client.ObjectList{&storagev1.StorageBucketList{}, &corev1.SecretList{}, &corev1.ServiceList{}} {
		if err := w.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds(), nil
}

func (w *world) secretChange(ctx context.Context, o *operator, namespace string, sharing int) (drain, error) {
	work, err := w.begin(ctx, o, namespace)
	if err != nil {
		return drain{}, err
	}
	began := time.Now()
	if err := w.changeSecret(ctx, namespace); err != nil {
		return drain{}, err
	}
	before := work.metrics.passes()
	err = o.until(ctx, "it to see the Secret's change", func(ctx context.Context) (bool, error) {
		m, err := scrape(ctx, o.metrics)
		return err == nil && m.passes() >= before+sharing, nil
	})
	if err != nil {
		return drain{}, err
	}
	took := time.Since(began)
	d, err := work.end(ctx)
	d.Buckets, d.Seconds = sharing, took.Seconds()
	return d, err
}

func (w *world) deleteAll(ctx context.Context, o *operator, namespace string, seen *observer, n int) (drain, error) {
	work, err := w.begin(ctx, o, namespace)
	if err != nil {
		return drain{}, err
	}
	began, err := w.load(ctx, loadOptions{namespace: namespace, mode: loadDelete})
	if err != nil {
		return drain{}, err
	}
	gone, err := seen.waitGone(ctx, n)
	if err != nil {
		return drain{}, err
	}
	d, err := work.end(ctx)
	d.Buckets, d.Seconds = n, last(gone).Sub(began.Start).Seconds()
	return d, err
}
