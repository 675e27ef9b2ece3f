package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"avalonhosting.example/bucketoperator/internal/engine"
)

// stubQueue says of every pass what started it.
type stubQueue struct {
	event bool
	woken chan reconcile.Request
}

func (q *stubQueue) Add(request reconcile.Request)           { q.woken <- request }
func (q *stubQueue) Event(reconcile.Request) bool            { return q.event }
func (q *stubQueue) Yield(reconcile.Request) (resume func()) { return func() {} }

// wait is when the controller would run the next pass.
func (a *arena) wait(result reconcile.Result, err error) time.Duration {
	if err != nil {
		return a.reconciler.When().When(reconcile.Request{NamespacedName: a.key})
	}
	return result.RequeueAfter
}

// A dead catalogue must not hold up a failover check.
func TestAStepThatFailsDelaysNoOther(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	var ran []string
	part := func(name string, outcome engine.Outcome) engine.Step {
		return engine.Step{Condition: name, Independent: true, Do: func(context.Context) engine.Outcome {
			ran = append(ran, name)
			return outcome
		}}
	}
	a := newArena(t, kind{}, nil)
	a.clock = clock
	a.reconciler = a.reconcilerFor(kind{steps: steps(
		part("Registered", engine.Failed("CatalogueDown", errors.New("no answer"))),
		part("PrimaryServes", engine.Done("Serving").RecheckAfter(2*time.Second)),
	)}, nil)
	queue := &stubQueue{}
	a.reconciler.SetQueue(queue)

	failures, checks := 0, 0
	start := clock.Now()
	for clock.Since(start) < 10*time.Minute {
		ran = nil
		delay := a.wait(a.pass())
		if delay > 2*time.Second {
			t.Fatalf("after %s the next pass is in %s: the check is to be every 2 s", clock.Since(start), delay)
		}
		for _, name := range ran {
			if name == "Registered" {
				failures++
			} else {
				checks++
			}
		}
		clock.SetTime(clock.Now().Add(delay))
	}
	if checks < 300 {
		t.Errorf("the check ran %d times in 10 minutes, want one each 2 s", checks)
	}
	if failures < 8 || failures > 14 {
		t.Errorf("the failing step ran %d times in 10 minutes, want delays that double from 250 ms to 5 min", failures)
	}
	a.wantCondition("Registered", metav1.ConditionFalse, "CatalogueDown")
	a.wantCondition("PrimaryServes", metav1.ConditionTrue, "Serving")

	queue.event, ran = true, nil
	_, _ = a.pass()
	if diff := cmp.Diff([]string{"Registered", "PrimaryServes"}, ran); diff != "" {
		t.Errorf("steps of a pass that an event has started (-want +got):\n%s", diff)
	}
	queue.event, ran = false, nil
	a.change(func(obj object) { obj.Spec.SizeGB++ })
	_, _ = a.pass()
	if diff := cmp.Diff([]string{"Registered", "PrimaryServes"}, ran); diff != "" {
		t.Errorf("steps of a pass over a new spec (-want +got):\n%s", diff)
	}
}

func TestWhatIsBlockedLooksAgainByItselfLessAndLessOften(t *testing.T) {
	t.Parallel()
	a := newArena(t, kind{steps: steps(does(engine.Blocked("NoMoon", "there is no moon")))}, nil)
	var delays []time.Duration
	for range 7 {
		delays = append(delays, a.wait(a.pass()).Round(time.Second))
	}
	want := []time.Duration{
		15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

func TestFailuresStillCountInTheControllersMetrics(t *testing.T) {
	t.Parallel()
	a := newArena(t, kind{steps: steps(does(engine.Failed("Moon", errors.New("x"))))}, nil)
	var delays []time.Duration
	for range 4 {
		result, err := a.pass()
		if err == nil {
			t.Fatal("the pass did not fail, so that controller-runtime counts no error")
		}
		delays = append(delays, a.wait(result, err))
	}
	want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}
