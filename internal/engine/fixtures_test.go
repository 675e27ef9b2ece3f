package engine_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

const (
	finalizer = "engine.example/hold"
	mark      = "engine.example/mark"
	trigger   = "engine.example/trigger"
)

type object = *storagev1.StorageBucket

// kind is a kind of the test's making.
type kind struct {
	steps     func(pass *engine.Pass, obj object) []engine.Step
	teardown  func(pass *engine.Pass, obj object) []engine.Step
	summarize func(summary *engine.Summary)
}

func (k kind) New() object { return &storagev1.StorageBucket{} }
func (k kind) Steps(pass *engine.Pass, obj object) []engine.Step {
	return k.steps(pass, obj)
}

func (k kind) Teardown(pass *engine.Pass, obj object) []engine.Step {
	if k.teardown == nil {
		return nil
	}
	return k.teardown(pass, obj)
}

func (k kind) Summarize(_ object, summary *engine.Summary) {
	if k.summarize != nil {
		k.summarize(summary)
		return
	}
	if summary.Status == metav1.ConditionTrue {
		summary.Message = "all is well"
	}
}

// arena is an object on the API server and a reconciler for it.
type arena struct {
	t          *testing.T
	client     client.Client
	key        client.ObjectKey
	events     *events.FakeRecorder
	clock      clock.PassiveClock // the real one when nil
	reconciler *engine.Reconciler[object]
}

// newArena makes the object. cached stands for the cache that the reconciler
// reads it from; nil means that it is always up to date.
func newArena(t *testing.T, k kind, cached *staleReader) *arena {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	live, err := client.New(testplane.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	obj := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: testplane.Namespace(t), Name: "subject"},
		Spec:       storagev1.StorageBucketSpec{Region: "here", SizeGB: 1},
	}
	if err := live.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	a := &arena{t: t, client: live, key: client.ObjectKeyFromObject(obj), events: events.NewFakeRecorder(100)}
	a.reconciler = a.reconcilerFor(k, cached)
	t.Cleanup(func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		_ = live.Patch(context.WithoutCancel(t.Context()), obj, patch)
	})
	return a
}

func (a *arena) reconcilerFor(k kind, cached *staleReader) *engine.Reconciler[object] {
	reading := a.client
	if cached != nil {
		cached.Client = a.client
		reading = cached
	}
	traits := engine.Traits{Name: "Subject", Finalizer: finalizer, Annotations: []string{mark}}
	return engine.NewReconciler(k, traits, engine.Options{
		Client: reading, Live: a.client, Recorder: a.events, Scheme: a.client.Scheme(), Resync: time.Hour,
		Random: func() float64 { return 0.5 }, Clock: a.clock,
	})
}

func (a *arena) pass() (reconcile.Result, error) {
	a.t.Helper()
	return a.reconciler.Reconcile(a.t.Context(), reconcile.Request{NamespacedName: a.key})
}

func (a *arena) object() object {
	a.t.Helper()
	obj := &storagev1.StorageBucket{}
	if err := a.client.Get(a.t.Context(), a.key, obj); err != nil {
		a.t.Fatalf("reading the object: %v", err)
	}
	return obj
}

func (a *arena) change(change func(object)) {
	a.t.Helper()
	obj := a.object()
	base := obj.DeepCopy()
	change(obj)
	if err := a.client.Patch(a.t.Context(), obj, client.MergeFrom(base)); err != nil {
		a.t.Fatalf("changing the object: %v", err)
	}
}

func (a *arena) wantCondition(conditionType string, status metav1.ConditionStatus, reason string) {
	a.t.Helper()
	c := meta.FindStatusCondition(a.object().Status.Conditions, conditionType)
	switch {
	case c == nil && status != "":
		a.t.Errorf("there is no condition %s, want %s/%s", conditionType, status, reason)
	case c != nil && (c.Status != status || c.Reason != reason):
		a.t.Errorf("condition %s is %s/%s (%s), want %s/%s", conditionType, c.Status, c.Reason, c.Message, status, reason)
	}
}

func (a *arena) told() []string {
	var told []string
	for {
		select {
		case e := <-a.events.Events:
			told = append(told, e)
		default:
			return told
		}
	}
}

// staleReader answers with an object as it once was, until it is let go.
type staleReader struct {
	client.Client
	frozen object
}

func (s *staleReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if to, ok := into.(object); ok && s.frozen != nil {
		s.frozen.DeepCopyInto(to)
		return nil
	}
	return s.Client.Get(ctx, key, into, options...)
}

// does is a step that returns err.
func does(err error) engine.Step {
	return step("Step", func(context.Context) error { return err })
}

// step is a step that is done when do returns no error.
func step(condition string, do func(context.Context) error) engine.Step {
	return engine.Step{Condition: condition, Do: func(ctx context.Context) engine.Outcome {
		return engine.From(do(ctx), engine.Done("Done"))
	}}
}

func steps(list ...engine.Step) func(*engine.Pass, object) []engine.Step {
	return func(*engine.Pass, object) []engine.Step { return list }
}

func concurrently(s engine.Step) engine.Step {
	s.Concurrent = true
	return s
}
