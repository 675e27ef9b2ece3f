package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// stubLock is a lock of "me" whose writes end with err.
type stubLock struct {
	resourcelock.Interface
	err    error
	holder string // whom Get finds
	during func() // called in Update, when set
}

func (l *stubLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (l *stubLock) Identity() string { return "me" }
func (l *stubLock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return l.err
}

func (l *stubLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if l.during != nil {
		l.during()
	}
	return l.err
}

func TestLeaseIsUnhealthyOnlyWhileHeldAndOverdue(t *testing.T) {
	t.Parallel()
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	lock := &stubLock{}
	l := &lease{Interface: lock, clock: clock, overdue: 14 * time.Second, deadline: 5 * time.Second}
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	expect := func(healthy bool, when string) {
		t.Helper()
		if err := l.check(nil); (err == nil) != healthy {
			t.Errorf("%s: %v, want healthy %t", when, err, healthy)
		}
	}
	expect(true, "before anybody has it")
	if err := l.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	pass(14 * time.Second)
	expect(true, "just in time")
	pass(time.Second)
	expect(false, "overdue")
	if err := l.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	expect(true, "renewed")

	lock.err = errors.New("refused")
	pass(15 * time.Second)
	if err := l.Update(t.Context(), mine); !errors.Is(err, lock.err) {
		t.Errorf("update: %v, want %v", err, lock.err)
	}
	expect(false, "a renewal that failed")

	lock.err = nil
	for _, record := range []resourcelock.LeaderElectionRecord{mine, {}} {
		if err := l.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	expect(true, "given back")
}

func TestReadinessEndsWithTheOrderToStop(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	r := &readiness{stopping: stopping}
	if err := r.check(nil); err == nil {
		t.Error("ready before the caches are filled")
	}
	r.filled.Store(true)
	if err := r.check(nil); err != nil {
		t.Errorf("not ready with filled caches: %v", err)
	}
	close(stopping)
	if err := r.check(nil); err == nil {
		t.Error("ready while stopping")
	}
}
