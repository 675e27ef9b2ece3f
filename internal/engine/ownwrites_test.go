package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// losingClient carries out a status write, and loses the answer once.
type losingClient struct {
	*staleReader
	lose bool
}

func (c *losingClient) Status() client.SubResourceWriter {
	return losingWriter{c.staleReader.Status(), c}
}

type losingWriter struct {
	client.SubResourceWriter
	c *losingClient
}

func (w losingWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	err := w.SubResourceWriter.Patch(ctx, obj, patch, options...)
	if w.c.lose {
		w.c.lose = false
		return errors.New("the connection was lost")
	}
	return err
}

// The pass after a status write whose answer was lost must not take the cache's
// word for what the status is: the write may have been carried out.
func TestAStatusWriteWhoseAnswerWasLostIsNotForgotten(t *testing.T) {
	t.Parallel()
	cache := &staleReader{}
	var outcome error
	a := newArena(t, kind{steps: func(*engine.Pass, object) []engine.Step {
		return []engine.Step{step("Step", func(context.Context) error { return outcome })}
	}}, cache)
	lossy := &losingClient{staleReader: cache}
	a.reconciler = engine.NewReconciler(kind{steps: func(*engine.Pass, object) []engine.Step {
		return []engine.Step{step("Step", func(context.Context) error { return outcome })}
	}}, engine.Traits{Name: "Subject", Finalizer: finalizer}, engine.Options{
		Client: lossy, Live: a.client, Recorder: a.events, Scheme: a.client.Scheme(), Resync: time.Hour,
	})
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionTrue, engine.ReasonReady)

	outcome, cache.frozen, lossy.lose = engine.Failed("Moon", errors.New("x")), a.object(), true
	if _, err := a.pass(); err == nil {
		t.Error("the lost write did not make the pass fail")
	}
	a.wantCondition("Ready", metav1.ConditionFalse, "Moon") // it was carried out

	outcome = nil
	result, err := a.pass() // on the version from before that write
	if err != nil || result.RequeueAfter > time.Second {
		t.Errorf("the pass on the old version asked for the next in %s (%v), want it soon", result.RequeueAfter, err)
	}
	cache.frozen = nil
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionTrue, engine.ReasonReady)
}
