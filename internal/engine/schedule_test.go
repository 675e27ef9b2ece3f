package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestScheduleSpreadsAfterARestartAndIsDueOnce(t *testing.T) {
	t.Parallel()
	now, random := time.Unix(0, 0), 0.25
	s := newSchedule(func() time.Time { return now }, func() float64 { return random }, Bounds{})
	name, uid := types.NamespacedName{Name: "subject"}, types.UID("a")
	step := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if s.resyncDue(name, uid) {
		t.Error("an object is due before it was seen")
	}
	step("after a restart", s.untilResync(name, uid, time.Hour, false), 15*time.Minute)
	now = now.Add(5 * time.Minute)
	step("a pass in between changes nothing", s.untilResync(name, uid, time.Hour, false), 10*time.Minute)
	now = now.Add(10 * time.Minute)
	if !s.resyncDue(name, uid) {
		t.Error("the object is not due when its time has come")
	}
	step("after a comparison", s.untilResync(name, uid, time.Hour, true), 57*time.Minute)
	if s.resyncDue(name, uid) {
		t.Error("the object is due again at once")
	}
	step("with a shorter interval", s.untilResync(name, uid, time.Minute, false), time.Minute)
	if s.resyncDue(name, types.UID("b")) {
		t.Error("a successor of the same name is due on its predecessor's account")
	}
	now = now.Add(2 * time.Hour)
	for range 3 {
		// Nothing says that the object was compared: it must not come round at once all the same.
		if got := s.untilResync(name, uid, time.Hour, false); got < 54*time.Minute {
			t.Errorf("an object whose time had come is to come again in %s", got)
		}
	}
	s.forget(name)
	random = 0
	if got := s.untilResync(name, uid, time.Hour, false); got <= 0 {
		t.Errorf("the next pass is in %s: never would it come", got)
	}
}

func TestCatchingUpTakesLongerEachTimeInARow(t *testing.T) {
	t.Parallel()
	s := newSchedule(func() time.Time { return time.Unix(0, 0) }, func() float64 { return 0 }, Bounds{})
	name, uid := types.NamespacedName{Name: "subject"}, types.UID("a")
	var last time.Duration
	for range 20 {
		delay := s.catchUp(name, uid)
		if delay < last || delay > catchUpBounds.Max {
			t.Errorf("%s came after %s", delay, last)
		}
		last = delay
	}
	if last != catchUpBounds.Max {
		t.Errorf("the longest delay is %s, want %s", last, catchUpBounds.Max)
	}
	s.untilResync(name, uid, time.Hour, false)
	if delay := s.catchUp(name, uid); delay != catchUpBounds.Min {
		t.Errorf("after a pass that was up to date the delay is %s, want %s", delay, catchUpBounds.Min)
	}
}
