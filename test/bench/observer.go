package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// observer watches the buckets of a namespace, as a user would, and notes when
// each is first seen ready, and when it is gone.
type observer struct {
	cancel context.CancelFunc
	// operator is whose work is waited for; nil for the limit's.
	operator *operator
	mu       sync.Mutex
	ready    map[string]time.Time
	gone     map[string]time.Time
	change   chan struct{} // closed, and made anew, at each change
	err      error
}

func (w *world) observe(ctx context.Context, namespace string) (*observer, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := w.admin.Watch(ctx, &storagev1.StorageBucketList{}, client.InNamespace(namespace))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watching the buckets: %w", err)
	}
	o := &observer{cancel: cancel, ready: map[string]time.Time{}, gone: map[string]time.Time{}, change: make(chan struct{})}
	go o.follow(stream)
	return o, nil
}

func (o *observer) follow(stream watch.Interface) {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		o.note(event, time.Now())
	}
	o.update(func() { o.err = errors.New("the watch of the buckets has ended") })
}

func (o *observer) note(event watch.Event, now time.Time) {
	bucket, ok := event.Object.(*storagev1.StorageBucket)
	switch {
	case !ok:
		return
	case event.Type == watch.Deleted:
		o.update(func() { o.gone[bucket.Name] = now })
	case meta.IsStatusConditionTrue(bucket.Status.Conditions, "Ready"):
		o.update(func() {
			if _, known := o.ready[bucket.Name]; !known {
				o.ready[bucket.Name] = now
			}
		})
	}
}

func (o *observer) update(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	close(o.change)
	o.change = make(chan struct{})
}

// waitReady waits until that many buckets are ready, and returns when each was.
func (o *observer) waitReady(ctx context.Context, n int) (map[string]time.Time, error) {
	return o.wait(ctx, "ready", n, o.ready)
}

// waitGone waits until that many buckets are gone, and returns when each went.
func (o *observer) waitGone(ctx context.Context, n int) (map[string]time.Time, error) {
	return o.wait(ctx, "gone", n, o.gone)
}

// patience bounds each wait for the operator: far longer than any should take.
const patience = 10 * time.Minute

func (o *observer) wait(ctx context.Context, what string, n int, of map[string]time.Time) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		o.mu.Lock()
		have, seen, err, change := len(of), map[string]time.Time(nil), o.err, o.change
		if have >= n {
			seen = maps.Clone(of)
		}
		o.mu.Unlock()
		switch {
		case have >= n:
			return seen, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-change:
		case <-o.operator.ended():
			return nil, o.operator.program.Err()
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %d buckets to be %s, %d are: %w", n, what, have, context.Cause(ctx))
		}
	}
}

// last is the latest of the times.
func last(times map[string]time.Time) time.Time {
	var latest time.Time
	for _, at := range times {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}
