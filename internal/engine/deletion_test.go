package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"avalonhosting.example/bucketoperator/internal/engine"
)

func TestAFailedTeardownKeepsTheFinalizerAndSaysWhy(t *testing.T) {
	t.Parallel()
	outcome := error(engine.Failed("Moon", errors.New("the moon is in the way")))
	a := newArena(t, kind{
		steps: func(pass *engine.Pass, _ object) []engine.Step {
			return []engine.Step{step("Step", func(ctx context.Context) error {
				_, err := pass.EnsureFinalizer(ctx, nil)
				return err
			})}
		},
		teardown: func(*engine.Pass, object) []engine.Step { return []engine.Step{does(outcome)} },
	}, nil)
	_, _ = a.pass()
	a.told()
	if err := a.client.Delete(t.Context(), a.object()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.pass(); err == nil {
		t.Error("a failed teardown must be tried again")
	}
	a.wantCondition("DeletionBlocked", metav1.ConditionTrue, "Moon")
	a.wantCondition("Ready", metav1.ConditionFalse, engine.ReasonDeleting)
	if diff := cmp.Diff([]string{"Warning Moon the moon is in the way"}, a.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	outcome = engine.InProgress("Going", "soon").After(time.Second)
	_, _ = a.pass()
	a.wantCondition("DeletionBlocked", "", "")

	outcome = nil
	if _, err := a.pass(); err != nil {
		t.Fatal(err)
	}
	if err := a.client.Get(t.Context(), a.key, kind{}.New()); !apierrors.IsNotFound(err) {
		t.Errorf("the object is still there: %v", err)
	}
	if _, err := a.pass(); err != nil {
		t.Errorf("a pass over an object that is gone: %v", err)
	}
}

func TestAnObjectThatOthersKeepSaysThatItIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"one with something outside": true, "one without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var atTheTeardown metav1.Condition
			a := newArena(t, kind{}, nil)
			tornDown := 0
			a.reconciler = a.reconcilerFor(kind{
				steps: func(pass *engine.Pass, _ object) []engine.Step {
					return []engine.Step{step("Step", func(ctx context.Context) error {
						if !held {
							return nil
						}
						_, err := pass.EnsureFinalizer(ctx, nil)
						return err
					})}
				},
				teardown: func(*engine.Pass, object) []engine.Step {
					return []engine.Step{step("Gone", func(context.Context) error {
						tornDown++
						if ready := meta.FindStatusCondition(a.object().Status.Conditions, "Ready"); ready != nil {
							atTheTeardown = *ready
						}
						return nil
					})}
				},
			}, nil)
			a.change(func(obj object) { obj.Finalizers = []string{"others.example/keep"} })
			_, _ = a.pass()
			if err := a.client.Delete(t.Context(), a.object()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := a.pass(); err != nil {
					t.Fatal(err)
				}
			}
			if held != (tornDown == 1) {
				t.Errorf("the teardown ran %d times", tornDown)
			}
			if held && atTheTeardown.Reason != engine.ReasonDeleting {
				t.Errorf("at the teardown Ready was %s/%s, want the deletion told before", atTheTeardown.Status, atTheTeardown.Reason)
			}
			obj := a.object()
			if diff := cmp.Diff([]string{"others.example/keep"}, obj.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			a.wantCondition("Ready", metav1.ConditionFalse, engine.ReasonDeleting)
			if held {
				a.wantCondition("Gone", metav1.ConditionTrue, "Done")
			}
			if ready := meta.FindStatusCondition(obj.Status.Conditions, "Ready"); !strings.Contains(ready.Message, "others.example/keep") {
				t.Errorf("Ready says %q, want it to name the finalizer that is waited for", ready.Message)
			}
			version := obj.ResourceVersion
			if _, err := a.pass(); err != nil || a.object().ResourceVersion != version {
				t.Errorf("another pass wrote, or failed: %v", err)
			}
		})
	}
}

func TestADeletionTellsAllThatKeepsIt(t *testing.T) {
	t.Parallel()
	independent := func(s engine.Step) engine.Step {
		s.Independent = true
		return s
	}
	a := newArena(t, kind{
		steps: func(pass *engine.Pass, _ object) []engine.Step {
			return []engine.Step{step("Step", func(ctx context.Context) error {
				_, err := pass.EnsureFinalizer(ctx, nil)
				return err
			})}
		},
		teardown: steps(
			independent(step("DatabaseDeleted", func(context.Context) error { return engine.Failed("Moon", errors.New("the moon")) })),
			independent(step("BucketDeleted", func(context.Context) error { return engine.Blocked("Sun", "the sun") })),
			independent(step("NameDeleted", func(context.Context) error { return nil })),
		),
	}, nil)
	_, _ = a.pass()
	if err := a.client.Delete(t.Context(), a.object()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.pass(); err == nil {
		t.Error("a step of the teardown failed, and the pass did not")
	}
	a.wantCondition("DatabaseDeleted", metav1.ConditionFalse, "Moon")
	a.wantCondition("BucketDeleted", metav1.ConditionFalse, "Sun")
	a.wantCondition("NameDeleted", metav1.ConditionTrue, "Done")
	blocked := meta.FindStatusCondition(a.object().Status.Conditions, "DeletionBlocked")
	if blocked == nil || blocked.Message != "the moon; the sun" {
		t.Errorf("DeletionBlocked is %+v, want both causes", blocked)
	}
}

func TestTheFinalizerCanBeTakenOffALiveObject(t *testing.T) {
	t.Parallel()
	wanted := true
	a := newArena(t, kind{steps: func(pass *engine.Pass, _ object) []engine.Step {
		return []engine.Step{step("Step", func(ctx context.Context) error {
			if !wanted {
				return pass.RemoveFinalizer(ctx)
			}
			_, err := pass.EnsureFinalizer(ctx, nil)
			return err
		})}
	}}, nil)
	for _, wanted = range []bool{true, false, true} {
		_, _ = a.pass()
		if has := len(a.object().Finalizers) == 1; has != wanted {
			t.Errorf("the finalizers are %v, wanted: %t", a.object().Finalizers, wanted)
		}
	}
}
