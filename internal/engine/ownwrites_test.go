package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"avalonhosting.example/bucketoperator/internal/engine"
)

// A pass on a version from before the engine's own last write would find
// nothing to write, and leave that write's word standing.
func TestAPassWaitsUntilTheCacheHasTheEnginesOwnLastWrite(t *testing.T) {
	t.Parallel()
	cache := &staleReader{}
	var outcome error
	ran := 0
	a := newArena(t, kind{steps: func(*engine.Pass, object) []engine.Step {
		return []engine.Step{step("Step", func(context.Context) error { ran++; return outcome })}
	}}, cache)
	_, _ = a.pass()
	ready := a.object()
	outcome = engine.Failed("Moon", errors.New("x"))
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionFalse, "Moon")

	outcome, cache.frozen, ran = nil, ready, 0
	result, err := a.pass()
	if err != nil || ran > 0 || result.RequeueAfter > time.Second {
		t.Errorf("the pass on the old version ran %d steps, and asked for the next in %s (%v)", ran, result.RequeueAfter, err)
	}
	cache.frozen = nil
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionTrue, engine.ReasonReady)
}

func TestAStepThatComesBackWithoutAWordHoldsReadyBack(t *testing.T) {
	t.Parallel()
	id, outcome := "old", error(nil)
	a := newArena(t, kind{steps: func(_ *engine.Pass, obj object) []engine.Step {
		return []engine.Step{step("Step", func(context.Context) error {
			obj.Status.ID = id
			return outcome
		})}
	}}, nil)
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionTrue, engine.ReasonReady)
	id, outcome = "new", engine.Requeue(time.Second)
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionUnknown, engine.ReasonPending)
	a.wantCondition("Step", metav1.ConditionTrue, "Done")
	outcome = nil
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionTrue, engine.ReasonReady)
}
