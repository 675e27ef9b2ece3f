// Package reference is for objects that another object refers to: a
// configuration, a Secret.
package reference

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sharedFor is how long an answer is kept: longer than a pass takes.
const sharedFor = 30 * time.Second

// SharedReader reads objects from the API server, and gives one answer to all
// passes that began before it was asked for: to each of them it is as new as one
// of its own would be. Many objects that refer to one and are worked on at once
// cost few reads.
type SharedReader[C client.Object] struct {
	// Live reads from the API server itself.
	Live client.Reader
	// New is an empty object.
	New func() C
	// Clock tells the time.
	Clock clock.PassiveClock

	mu    sync.Mutex
	reads map[types.NamespacedName]*read[C]
}

// read is one question, and its answer once done is closed.
type read[C client.Object] struct {
	sent time.Time
	done chan struct{}
	obj  C
	err  error
}

// Get is the object as the API server had it at some time after began. It is
// shared: read only.
func (s *SharedReader[C]) Get(ctx context.Context, key types.NamespacedName, began time.Time) (C, error) {
	s.mu.Lock()
	r := s.reads[key]
	if r == nil || !r.sent.After(began) {
		r = s.send(ctx, key)
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.obj, r.err
	case <-ctx.Done():
		var none C
		return none, ctx.Err()
	}
}

// send asks the API server. The lock is held.
func (s *SharedReader[C]) send(ctx context.Context, key types.NamespacedName) *read[C] {
	now := s.Clock.Now()
	for other, r := range s.reads {
		if now.Sub(r.sent) > sharedFor {
			delete(s.reads, other)
		}
	}
	if s.reads == nil {
		s.reads = map[types.NamespacedName]*read[C]{}
	}
	r := &read[C]{sent: now, done: make(chan struct{}), obj: s.New()}
	s.reads[key] = r
	// The end of one pass is not that of the others that wait for the answer.
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer close(r.done)
		ctx, cancel := context.WithTimeout(ctx, sharedFor)
		defer cancel()
		r.err = s.Live.Get(ctx, key, r.obj)
	}()
	return r
}
