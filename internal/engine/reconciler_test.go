package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/engine"
)

func TestOutcomesBecomeConditionsAndRequeues(t *testing.T) {
	t.Parallel()
	failure := errors.New("the moon is in the way")
	for name, tc := range map[string]struct {
		err         error
		status      metav1.ConditionStatus
		reason      string
		reconciling bool
		stalled     bool
		requeue     time.Duration // 0 means the resync
		backoff     bool
	}{
		"done":                     {nil, metav1.ConditionTrue, "Done", false, false, 0, false},
		"is to be looked at again": {engine.Done("Done").RecheckAfter(5 * time.Second), metav1.ConditionTrue, "Done", false, false, 5 * time.Second, false},
		"is in progress":           {engine.InProgress("Later", "not yet").After(3 * time.Second), metav1.ConditionUnknown, "Later", true, false, 3 * time.Second, false},
		// What waits for an event looks again by itself as well: an event may be missed.
		"waits for an event":      {engine.InProgress("Later", "not yet"), metav1.ConditionUnknown, "Later", true, false, 15 * time.Second, false},
		"is blocked":              {engine.Blocked("NoMoon", "there is no moon"), metav1.ConditionFalse, "NoMoon", true, false, 15 * time.Second, false},
		"is blocked by a person":  {engine.Blocked("NoMoon", "there is no moon").Stalled(), metav1.ConditionFalse, "NoMoon", false, true, 15 * time.Second, false},
		"failed":                  {engine.Failed("Moon", failure), metav1.ConditionFalse, "Moon", true, false, 0, true},
		"failed without a reason": {failure, metav1.ConditionFalse, "Error", true, false, 0, true},
		"was told when to retry":  {engine.Failed("Moon", failure).After(7 * time.Second), metav1.ConditionFalse, "Moon", true, false, 7 * time.Second, false},
		"cannot be":               {engine.Terminal("Moon", failure), metav1.ConditionFalse, "Moon", false, true, 0, false},
		// A NotFound that a step met is not the object's own.
		"did not find something": {
			fmt.Errorf("reading: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "moon")),
			metav1.ConditionFalse, "Error", true, false, 0, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t, kind{steps: steps(does(tc.err))}, nil)
			result, err := a.pass()
			if (err != nil) != tc.backoff {
				t.Errorf("the pass returned the error %v, backoff wanted: %t", err, tc.backoff)
			}
			want := tc.requeue
			if want == 0 && !tc.backoff {
				want = 30 * time.Minute // half the resync, as it is the object's first
			}
			if got := result.RequeueAfter.Round(time.Second); got != want {
				t.Errorf("the next pass is in %s, want %s", got, want)
			}
			a.wantCondition("Step", tc.status, tc.reason)
			if tc.status == metav1.ConditionTrue {
				tc.reason = engine.ReasonReady
			}
			a.wantCondition("Ready", tc.status, tc.reason)
			conditions := a.object().Status.Conditions
			if got := meta.IsStatusConditionTrue(conditions, "Reconciling"); got != tc.reconciling {
				t.Errorf("Reconciling is %t, want %t", got, tc.reconciling)
			}
			if got := meta.IsStatusConditionTrue(conditions, "Stalled"); got != tc.stalled {
				t.Errorf("Stalled is %t, want %t", got, tc.stalled)
			}
		})
	}
}

func TestASecondPassWithTheSameOutcomeWritesAndTellsNothing(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"done": nil, "failed": engine.Failed("Moon", errors.New("x")), "stalled": engine.Terminal("Moon", errors.New("x")),
		"waiting": engine.InProgress("Later", "x").After(time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t, kind{steps: steps(does(err))}, nil)
			_, _ = a.pass()
			version := a.object().ResourceVersion
			a.told()
			_, _ = a.pass()
			if got := a.object().ResourceVersion; got != version {
				t.Errorf("the second pass wrote: version %s became %s", version, got)
			}
			if told := a.told(); len(told) > 0 {
				t.Errorf("the second pass told %v", told)
			}
		})
	}
}

func TestAnObjectRecovers(t *testing.T) {
	t.Parallel()
	outcome := error(engine.Terminal("Moon", errors.New("x")))
	a := newArena(t, kind{steps: func(*engine.Pass, object) []engine.Step { return []engine.Step{does(outcome)} }}, nil)
	for _, next := range []error{outcome, engine.Failed("Sun", errors.New("y")), nil} {
		outcome = next
		_, _ = a.pass()
	}
	a.wantCondition("Ready", metav1.ConditionTrue, engine.ReasonReady)
	a.wantCondition("Stalled", "", "")
	a.wantCondition("Reconciling", "", "")
	want := []string{"Warning Moon x", "Warning Sun y", "Normal Available all is well"}
	if diff := cmp.Diff(want, a.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestTheFirstStepThatIsNotDoneEndsThePassUnlessIndependent(t *testing.T) {
	t.Parallel()
	var ran []string
	part := func(name string, independent bool, err error) engine.Step {
		s := step(name, func(context.Context) error {
			ran = append(ran, name)
			return err
		})
		s.Independent = independent
		return s
	}
	a := newArena(t, kind{steps: steps(
		part("First", true, engine.Failed("One", errors.New("x"))),
		part("Second", false, engine.Failed("Two", errors.New("y"))),
		part("Third", false, nil),
	)}, nil)
	_, _ = a.pass()
	if diff := cmp.Diff([]string{"First", "Second"}, ran); diff != "" {
		t.Errorf("steps that ran (-want +got):\n%s", diff)
	}
	a.wantCondition("Ready", metav1.ConditionFalse, "One")
	a.wantCondition("Second", metav1.ConditionFalse, "Two")
	a.wantCondition("Third", metav1.ConditionUnknown, engine.ReasonPending)
}

func TestConcurrentStepsAllRunAndAPanicIsNotLost(t *testing.T) {
	t.Parallel()
	meeting := make(chan struct{})
	meet := func(err error) func(context.Context) error {
		return func(context.Context) error { // returns only if both run at the same time
			select {
			case meeting <- struct{}{}:
			case <-meeting:
			}
			return err
		}
	}
	a := newArena(t, kind{steps: steps(
		concurrently(step("One", meet(engine.Failed("Moon", errors.New("x"))))),
		concurrently(step("Two", meet(nil))),
	)}, nil)
	_, _ = a.pass()
	a.wantCondition("One", metav1.ConditionFalse, "Moon")
	a.wantCondition("Two", metav1.ConditionTrue, "Done")

	b := newArena(t, kind{steps: steps(
		concurrently(step("One", func(context.Context) error { panic("boom") })),
		concurrently(step("Two", func(context.Context) error { return nil })),
	)}, nil)
	defer func() {
		if recover() == nil {
			t.Error("the panic of a concurrent step was lost")
		}
	}()
	_, _ = b.pass()
}

func TestWhatAStepPutsIntoTheStatusIsWritten(t *testing.T) {
	t.Parallel()
	a := newArena(t, kind{steps: func(pass *engine.Pass, obj object) []engine.Step {
		return []engine.Step{step("Step", func(ctx context.Context) error {
			obj.Status.ID = "early"
			if _, err := pass.EnsureFinalizer(ctx, map[string]string{mark: "1"}); err != nil {
				return err
			}
			obj.Status.Region = "late"
			return engine.Failed("Moon", errors.New("x"))
		})}
	}}, nil)
	_, _ = a.pass()
	if obj := a.object(); obj.Status.ID != "early" || obj.Status.Region != "late" || obj.Status.ObservedGeneration != obj.Generation {
		t.Errorf("the status is %+v", obj.Status)
	}
}

func TestAConditionThatBecomesFalseMakesAnEventUnlessSetSilently(t *testing.T) {
	t.Parallel()
	a := newArena(t, kind{steps: func(pass *engine.Pass, _ object) []engine.Step {
		pass.SetCondition("Sized", metav1.ConditionFalse, "TooSmall", "told")
		pass.RemoveCondition("Lit")
		pass.SetConditionSilently("Lit", metav1.ConditionFalse, "Dark", "not told")
		return []engine.Step{does(nil)}
	}}, nil)
	_, _ = a.pass()
	a.wantCondition("Sized", metav1.ConditionFalse, "TooSmall")
	a.wantCondition("Lit", metav1.ConditionFalse, "Dark")
	told := strings.Join(a.told(), "; ")
	if !strings.Contains(told, "TooSmall") || strings.Contains(told, "Dark") {
		t.Errorf("the events are %s, want one for Sized and none for Lit", told)
	}
	// One that is removed and set again has not changed.
	before := a.object()
	for i := range before.Status.Conditions {
		before.Status.Conditions[i].LastTransitionTime = metav1.NewTime(before.Status.Conditions[i].LastTransitionTime.Add(-time.Hour))
	}
	if err := a.client.Status().Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	_, _ = a.pass()
	if after := a.object(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the second pass wrote: %+v", after.Status.Conditions)
	}
}

func TestAnswersThatReportNothingLeaveTheConditionsAlone(t *testing.T) {
	t.Parallel()
	outcome := error(engine.Terminal("Moon", errors.New("x")))
	a := newArena(t, kind{steps: func(*engine.Pass, object) []engine.Step { return []engine.Step{does(outcome)} }}, nil)
	_, _ = a.pass()
	version := a.object().ResourceVersion
	for _, outcome = range []error{engine.Unchanged(), engine.Skipped(), engine.Requeue(time.Second)} {
		if _, err := a.pass(); err != nil {
			t.Errorf("%v made the pass fail: %v", outcome, err)
		}
		if got := a.object().ResourceVersion; got != version {
			t.Errorf("%v wrote: %+v", outcome, a.object().Status)
		}
	}
	a.wantCondition("Stalled", metav1.ConditionTrue, "Moon")
}

func TestConcurrentStepsMayNotWriteToTheObject(t *testing.T) {
	t.Parallel()
	a := newArena(t, kind{steps: func(pass *engine.Pass, _ object) []engine.Step {
		writes := func(ctx context.Context) error {
			_, err := pass.EnsureFinalizer(ctx, nil)
			return err
		}
		return []engine.Step{concurrently(step("One", writes)), concurrently(step("Two", writes))}
	}}, nil)
	if _, err := a.pass(); err == nil {
		t.Error("the pass succeeded")
	}
	a.wantCondition("One", metav1.ConditionFalse, engine.ReasonError)
	if got := a.object().Finalizers; len(got) > 0 {
		t.Errorf("the object has the finalizers %v", got)
	}
}

func TestAKindChoosesStatusAndReasonOfReadyAndOfWhatIsInProgress(t *testing.T) {
	t.Parallel()
	outcome := engine.InProgress("Progressing", "3/5 replicas ready")
	k := kind{
		steps: func(*engine.Pass, object) []engine.Step {
			return []engine.Step{{Condition: "Step", InProgress: metav1.ConditionFalse, Do: func(context.Context) engine.Outcome { return outcome }}}
		},
		summarize: func(s *engine.Summary) {
			if s.Status == metav1.ConditionTrue {
				s.Reason = "AllReplicasReady"
			}
		},
	}
	a := newArena(t, k, nil)
	_, _ = a.pass()
	a.wantCondition("Step", metav1.ConditionFalse, "Progressing")
	a.wantCondition("Ready", metav1.ConditionFalse, "Progressing")
	outcome = engine.Done("Scaled")
	_, _ = a.pass()
	a.wantCondition("Ready", metav1.ConditionTrue, "AllReplicasReady")
}

func TestAPassOnAnOutdatedObjectWritesNothing(t *testing.T) {
	t.Parallel()
	holding := func(pass *engine.Pass, _ object) []engine.Step {
		return []engine.Step{step("Step", func(ctx context.Context) error {
			_, err := pass.EnsureFinalizer(ctx, map[string]string{mark: "1"})
			return err
		})}
	}
	confirming := func(pass *engine.Pass, _ object) []engine.Step {
		return []engine.Step{step("Step", pass.ConfirmLatest)}
	}
	for name, tc := range map[string]struct {
		steps  func(*engine.Pass, object) []engine.Step
		change func(*testing.T, *arena)
		stale  bool
	}{
		"status, spec changed":                  {steps(does(nil)), changeSpec, true},
		"status, object recreated":              {steps(does(nil)), recreate, true},
		"status, labels changed":                {steps(does(nil)), changeLabels, false},
		"metadata, spec changed":                {holding, changeSpec, true},
		"metadata, object recreated":            {holding, recreate, true},
		"metadata, labels changed":              {holding, changeLabels, false},
		"confirmation, spec changed":            {confirming, changeSpec, true},
		"confirmation, status changed":          {confirming, changeStatus, true},
		"confirmation, mark changed":            {confirming, changeMark, true},
		"confirmation, labels changed":          {confirming, changeLabels, false},
		"status, status changed by a successor": {steps(does(nil)), changeStatus, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := &staleReader{}
			a := newArena(t, kind{steps: tc.steps}, cache)
			cache.frozen = a.object()
			tc.change(t, a)
			before := a.object()
			result, err := a.pass()
			if err != nil {
				t.Fatalf("the pass failed: %v", err)
			}
			if wrote := a.object().ResourceVersion != before.ResourceVersion; wrote == tc.stale {
				t.Errorf("the pass wrote: %t; the object had changed in what matters: %t", wrote, tc.stale)
			}
			if soon := result.RequeueAfter < time.Second; soon != tc.stale {
				t.Errorf("the next pass is in %s", result.RequeueAfter)
			}
		})
	}
}

func changeSpec(_ *testing.T, a *arena) { a.change(func(obj object) { obj.Spec.SizeGB++ }) }
func changeLabels(_ *testing.T, a *arena) {
	a.change(func(obj object) { obj.Labels = map[string]string{"team": "blue"} })
}

func changeMark(_ *testing.T, a *arena) {
	a.change(func(obj object) { obj.Annotations = map[string]string{mark: "2"} })
}

func changeStatus(t *testing.T, a *arena) {
	obj := a.object()
	base := obj.DeepCopy()
	obj.Status.ID = "another"
	if err := a.client.Status().Patch(t.Context(), obj, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
}

func recreate(t *testing.T, a *arena) {
	obj := a.object()
	if err := a.client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	obj.ResourceVersion, obj.UID = "", ""
	if err := a.client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}
