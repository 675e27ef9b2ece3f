package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// lease watches over a lease: a leader that cannot renew gives up by itself,
// unless what should do so hangs. Then /healthz fails, and the kubelet ends it.
type lease struct {
	resourcelock.Interface
	events  *lateRecorder
	clock   clock.PassiveClock
	overdue time.Duration // when /healthz fails
	// deadline is when another may lead, see mayAct.
	deadline time.Duration
	renewed  atomic.Pointer[time.Time] // nil while another, or nobody, holds it
	// ended is that this process held the lease, and gave it back or saw another
	// hold it, or that its caches are ahead of the server: for good, as a manager
	// that has led does not lead again.
	ended atomic.Bool
	// released is that this process has begun to give the lease back. It may try
	// more than once.
	released atomic.Bool
	// revision is the greatest of the cluster's data that the lease has told of.
	revision *revision
}

// Get reads the lease. When somebody has taken it before its time, say by
// deleting it, leader election would try to renew it until the deadline.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != "" && record.HolderIdentity != l.Identity() && l.renewed.Load() != nil {
		l.ended.Store(true)
	}
	return record, raw, err
}

// Create makes the lease.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.refuseAnother(record); err != nil {
		return err
	}
	begun := l.clock.Now()
	return l.note(begun, record, l.Interface.Create(ctx, record))
}

// Update takes, renews or releases the lease. A lease that another may hold by
// now is not released: leader election reads its newest version before, and would
// release a successor's.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.refuseAnother(record); err != nil {
		return err
	}
	begun := l.clock.Now()
	if record.HolderIdentity != l.Identity() {
		if l.lost() {
			return fmt.Errorf("the lease %s is not released: it was not renewed in time, another may hold it", leaseName)
		}
		// Before it is sent: another may lead before the answer is here.
		l.released.Store(l.renewed.Load() != nil)
	}
	return l.note(begun, record, l.Interface.Update(ctx, record))
}

// refuseAnother refuses to lead again: the fence stays shut, so that a leader
// could do nothing.
func (l *lease) refuseAnother(record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == l.Identity() && (l.ended.Load() || l.released.Load()) {
		return fmt.Errorf("the lease %s is not taken again: it was given back, or another has held it since", leaseName)
	}
	return nil
}

// note counts a renewal from when it was begun: others may have seen it then.
func (l *lease) note(begun time.Time, record resourcelock.LeaderElectionRecord, err error) error {
	switch {
	case err != nil:
	case record.HolderIdentity == l.Identity():
		l.renewed.Store(&begun)
	default:
		if l.renewed.Load() != nil {
			l.ended.Store(true) // first, or the fence would be open for a moment
			l.renewed.Store(nil)
		}
	}
	return err
}

// check fails when this process leads and has not renewed for too long.
func (l *lease) check(*http.Request) error {
	renewed := l.renewed.Load()
	if renewed == nil {
		return nil
	}
	if since := l.clock.Since(*renewed); since > l.overdue {
		return fmt.Errorf("the lease %s was last renewed %s ago", leaseName, since.Round(time.Second))
	}
	return nil
}

// readiness is true from when the caches are filled until the process is told
// to stop.
type readiness struct {
	fill     func(context.Context) error
	filled   atomic.Bool
	stopping <-chan struct{}
}

// NeedLeaderElection is false: a standby is ready, too.
func (r *readiness) NeedLeaderElection() bool { return false }

// Start waits until the caches are filled.
func (r *readiness) Start(ctx context.Context) error {
	if err := r.fill(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	r.filled.Store(ctx.Err() == nil) // unless it was told to stop before
	return nil
}

func (r *readiness) check(*http.Request) error {
	select {
	case <-r.stopping:
		return errors.New("stopping")
	default:
	}
	if !r.filled.Load() {
		return errors.New("the caches are being filled")
	}
	return nil
}
