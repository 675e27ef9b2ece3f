package egress

import (
	"context"
	"errors"
	"testing"
)

// workers counts the workers that passes have.
type workers struct{ busy, given int }

func (w *workers) context(ctx context.Context) context.Context {
	w.busy++
	return WithYield(ctx, func() func() {
		w.busy--
		w.given++
		return func() { w.busy++ }
	})
}

func TestACallInFlightHoldsNoWorker(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	w := &workers{}
	ctx := w.context(t.Context())
	done, err := g.Admit(ctx, call("a"))
	if err != nil {
		t.Fatal(err)
	}
	if w.busy != 0 {
		t.Error("the call holds a worker")
	}
	for range 2 {
		if done(Answered()); w.busy != 1 {
			t.Errorf("after the call %d workers are taken, want the one", w.busy)
		}
	}
}

func TestACallThatWaitsForItsTurnHoldsNoWorkerAndTakesOneAgain(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	for range firstWindow {
		if _, err := g.Admit(t.Context(), call("in flight")); err != nil {
			t.Fatal(err)
		}
	}
	w := &workers{}
	_, err := g.Admit(w.context(t.Context()), call("b")) // lingers, as the others only just began
	if e := refusal(t, err); e.Limit != LimitWindow {
		t.Fatalf("Admit = %#v", e)
	}
	if w.busy != 1 || w.given != 1 {
		t.Errorf("%d workers are taken and %d were given back, want 1 and 1", w.busy, w.given)
	}
}

func TestARefusedCallKeepsItsWorker(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	open(t, g)
	w := &workers{}
	if _, err := g.Admit(w.context(t.Context()), call("b")); err == nil {
		t.Fatal("the circuit is closed")
	}
	if w.busy != 1 || w.given != 0 {
		t.Errorf("%d workers are taken and %d were given back, want 1 and 0", w.busy, w.given)
	}
}

func TestYieldWithoutAWorkerDoesNothing(t *testing.T) {
	t.Parallel()
	Yield(t.Context())()
}

func TestNoCallIsLetOutBehindAShutFence(t *testing.T) {
	t.Parallel()
	another := errors.New("another leads")
	_, clock := newTestGovernor(Limits{})
	shut := false
	g := newGovernor(clock, NewPool(0), func() error {
		if shut {
			return another
		}
		return nil
	}, own, Limits{})
	done, err := g.Admit(t.Context(), call("a"))
	if err != nil {
		t.Fatal(err)
	}
	done(Answered())
	shut = true
	_, err = g.Admit(t.Context(), call("b"))
	if e := refusal(t, err); e.Class != Fenced || !errors.Is(err, another) || !IsFenced(err) {
		t.Errorf("Admit = %#v, want the fence's word", e)
	}
}
