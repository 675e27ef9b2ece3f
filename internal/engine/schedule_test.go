package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestScheduleSpreadsAfterARestartAndIsDueOnce(t *testing.T) {
	t.Parallel()
	now, random := time.Unix(0, 0), 0.25
	s := newSchedule(func() time.Time { return now }, func() float64 { return random })
	uid := types.UID("a")
	step := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if s.due(uid) {
		t.Error("an object is due before it was seen")
	}
	step("after a restart", s.remaining(uid, time.Hour, false), 15*time.Minute)
	now = now.Add(5 * time.Minute)
	step("a pass in between changes nothing", s.remaining(uid, time.Hour, false), 10*time.Minute)
	now = now.Add(10 * time.Minute)
	if !s.due(uid) {
		t.Error("the object is not due when its time has come")
	}
	step("after a comparison", s.remaining(uid, time.Hour, true), 57*time.Minute)
	if s.due(uid) {
		t.Error("the object is due again at once")
	}
	step("with a shorter interval", s.remaining(uid, time.Minute, false), time.Minute)
	s.forget(uid)
	random = 0
	if got := s.remaining(uid, time.Hour, false); got <= 0 {
		t.Errorf("the next pass is in %s: never would it come", got)
	}
}
