package child_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

const (
	// condition is that of the one step of the arena's kind.
	condition = "Child"
	// conflict is the reason for somebody else's object in the way.
	conflict = "ChildConflict"
	// replicasManager is a second field manager of the operator.
	replicasManager = engine.FieldManager + "-replicas"
	// patience is far longer than anything takes here.
	patience = 60 * time.Second
)

type owner = *storagev1.StorageBucket

// keeps is a kind whose objects have one step: do.
type keeps struct {
	do func(ctx context.Context, pass *engine.Pass) error
}

func (k *keeps) New() owner { return &storagev1.StorageBucket{} }
func (k *keeps) Steps(pass *engine.Pass, _ owner) []engine.Step {
	return []engine.Step{{Condition: condition, InProgress: metav1.ConditionFalse, Do: func(ctx context.Context) engine.Outcome {
		return engine.From(k.do(ctx, pass), engine.Done("Done"))
	}}}
}
func (k *keeps) Teardown(*engine.Pass, owner) []engine.Step { return nil }
func (k *keeps) Summarize(owner, *engine.Summary)           {}

// arena is an owner on the API server, a real cache of its children, and a
// reconciler that is run by hand.
type arena struct {
	t         *testing.T
	namespace string
	owner     owner
	admin     client.Client // somebody else, who reads the API server itself
	cached    *mayLag       // the operator
	live      client.Client // the operator, past its cache
	requests  *recorder     // the operator's, for its children
	kind      *keeps

	reconciler *engine.Reconciler[owner]
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// newArena makes an owner whose one step is do.
func newArena(t *testing.T, do func(ctx context.Context, pass *engine.Pass) error) *arena {
	t.Helper()
	scheme := newScheme(t)
	admin, err := client.New(testplane.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{t: t, namespace: testplane.Namespace(t), admin: admin, requests: &recorder{}, kind: &keeps{do: do}}
	a.owner = &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "subject"},
		Spec:       storagev1.StorageBucketSpec{Region: "here", SizeGB: 1},
	}
	a.create(a.owner)

	config := testplane.Config()
	config.QPS = -1
	config.Wrap(a.requests.wrap)
	if a.live, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	reading := a.newCache(scheme)
	caching, err := client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{
		Reader: reading, DisableFor: []client.Object{&storagev1.StorageBucket{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.cached = &mayLag{Client: caching}
	a.restart()
	return a
}

// newCache is a cache as the operator has it: of its own small objects by their
// label, and of workloads with the fields that it has applied.
func (a *arena) newCache(scheme *runtime.Scheme) cache.Cache {
	a.t.Helper()
	own := labels.SelectorFromSet(labels.Set{engine.Label: engine.LabelValue})
	small := cache.ByObject{Label: own, Transform: child.Compact}
	applied := cache.ByObject{Transform: child.KeepManagedFields(engine.FieldManager, replicasManager)}
	c, err := cache.New(testplane.Config(), cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{a.namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: small, &corev1.Service{}: small, &discoveryv1.EndpointSlice{}: small,
			&appsv1.Deployment{}: applied, &appsv1.StatefulSet{}: applied, &autoscalingv2.HorizontalPodAutoscaler{}: applied,
		},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Start(ctx); err != nil {
			a.t.Errorf("running the cache: %v", err)
		}
	})
	a.t.Cleanup(func() { cancel(); running.Wait() })
	return c
}

// restart forgets all that the operator has in memory.
func (a *arena) restart() {
	a.reconciler = engine.NewReconciler(a.kind, engine.Traits{Name: "Subject", Finalizer: "engine.example/hold"}, engine.Options{
		Client: a.cached, Live: a.live, Recorder: events.NewFakeRecorder(1000), Scheme: a.live.Scheme(),
		Resync: time.Hour, Random: func() float64 { return 0.5 },
	})
}

// pass runs one pass, and returns the requests that it made for children, and
// when the next is to be.
func (a *arena) pass() ([]string, time.Duration) {
	a.t.Helper()
	a.requests.forget()
	result, err := a.reconciler.Reconcile(a.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(a.owner)})
	if err != nil {
		a.t.Fatalf("the pass failed: %v", err)
	}
	return a.requests.list(), result.RequeueAfter
}

// passes runs passes until the step is done.
func (a *arena) passes() {
	a.t.Helper()
	a.eventually(func() string {
		a.pass()
		if c := a.condition(condition); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("the step is not done: %+v", c)
		}
		return ""
	})
}

// passCosts runs one pass on an up-to-date cache and compares the requests.
func (a *arena) passCosts(object client.Object, want ...string) time.Duration {
	a.t.Helper()
	a.settle(object)
	requests, next := a.pass()
	if diff := cmp.Diff(append([]string{}, want...), requests); diff != "" {
		a.t.Errorf("the requests of the pass differ (-want +got):\n%s", diff)
	}
	return next
}

func (a *arena) condition(conditionType string) *metav1.Condition {
	a.t.Helper()
	a.read(a.owner)
	return meta.FindStatusCondition(a.owner.Status.Conditions, conditionType)
}

func (a *arena) wantCondition(status metav1.ConditionStatus, reason string) {
	a.t.Helper()
	if c := a.condition(condition); c == nil || c.Status != status || c.Reason != reason {
		a.t.Errorf("the condition is %+v, want %s/%s", c, status, reason)
	}
}

func (a *arena) wantStalled(stalled bool) {
	a.t.Helper()
	if c := a.condition(engine.ConditionStalled); (c != nil && c.Status == metav1.ConditionTrue) != stalled {
		a.t.Errorf("Stalled is %+v, want %t", c, stalled)
	}
}

// wantBlocked wants the step to wait for a person, and to look again by itself.
func (a *arena) wantBlocked(reason string, next time.Duration) {
	a.t.Helper()
	a.wantCondition(metav1.ConditionFalse, reason)
	a.wantStalled(true)
	if next != 15*time.Second {
		a.t.Errorf("the next look is in %s, want 15s", next)
	}
}

func (a *arena) create(object client.Object) {
	a.t.Helper()
	object.SetNamespace(a.namespace)
	if err := a.admin.Create(a.t.Context(), object); err != nil {
		a.t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

func (a *arena) read(object client.Object) {
	a.t.Helper()
	object.SetNamespace(a.namespace)
	if err := a.admin.Get(a.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		a.t.Fatalf("reading %T %s: %v", object, object.GetName(), err)
	}
}

func (a *arena) delete(object client.Object) {
	a.t.Helper()
	object.SetNamespace(a.namespace)
	if err := a.admin.Delete(a.t.Context(), object); err != nil {
		a.t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
	}
}

// change changes an object as somebody else's Update does.
func change[C client.Object](a *arena, object C, how func(C)) {
	a.t.Helper()
	a.eventually(func() string {
		a.read(object)
		how(object)
		if err := a.admin.Update(a.t.Context(), object, client.FieldOwner("somebody-else")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// settle waits until the operator's cache has the object as the API server has it.
func (a *arena) settle(object client.Object) {
	a.t.Helper()
	object.SetNamespace(a.namespace)
	key := client.ObjectKeyFromObject(object)
	a.eventually(func() string {
		want, have := object.DeepCopyObject().(client.Object), object.DeepCopyObject().(client.Object)
		wantErr, haveErr := a.admin.Get(a.t.Context(), key, want), a.cached.Client.Get(a.t.Context(), key, have)
		_, isSecret := object.(*corev1.Secret)
		_, isService := object.(*corev1.Service)
		if (isSecret || isService) && wantErr == nil && want.GetLabels()[engine.Label] != engine.LabelValue {
			wantErr = apierrors.NewNotFound(schema.GroupResource{}, "") // of no interest to the cache
		}
		switch {
		case apierrors.IsNotFound(wantErr) && apierrors.IsNotFound(haveErr):
		case wantErr != nil || haveErr != nil:
			return fmt.Sprintf("the API server says %v, the cache %v", wantErr, haveErr)
		case want.GetResourceVersion() != have.GetResourceVersion() || want.GetUID() != have.GetUID():
			return "the cache lags behind"
		}
		return ""
	})
}

func (a *arena) eventually(check func() string) {
	a.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(a.t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		last = check()
		return last == "", nil
	})
	if err != nil {
		a.t.Fatalf("still not so after %s: %s", patience, last)
	}
}

// ownedBy is metadata of a child of the arena's owner.
func (a *arena) ownedBy(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Labels: map[string]string{engine.Label: engine.LabelValue},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(a.owner, storagev1.GroupVersion.WithKind("StorageBucket"))},
	}
}

// mayLag is the operator's client. Where the cache lags behind, it answers as
// the cache once was.
type mayLag struct {
	client.Client
	frozen client.Object // nil: the cache is up to date
	absent bool          // the frozen object was not there
}

func (m *mayLag) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if m.frozen != nil && fmt.Sprintf("%T", into) == fmt.Sprintf("%T", m.frozen) {
		if m.absent {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "frozen"}, key.Name)
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.frozen)
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(raw, into)
	}
	return m.Client.Get(ctx, key, into, options...)
}

// recorder records the requests for children, as "PUT secrets/name".
type recorder struct {
	mu     sync.Mutex
	made   []string
	bodies []string
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		_, path, namespaced := strings.Cut(req.URL.Path, "/namespaces/")
		_, path, _ = strings.Cut(path, "/")
		if !namespaced || strings.HasPrefix(path, "storagebuckets") {
			return next.RoundTrip(req)
		}
		var body []byte
		if req.Body != nil {
			var err error
			if body, err = io.ReadAll(req.Body); err != nil {
				return nil, err
			}
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		made := req.Method + " " + path
		if req.URL.Query().Has("dryRun") {
			made = "dry run of " + made
		}
		r.mu.Lock()
		r.made, r.bodies = append(r.made, made), append(r.bodies, string(body))
		r.mu.Unlock()
		return next.RoundTrip(req)
	})
}

func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.made...)
}

// bodyOf is the body of the last request of that name.
func (r *recorder) bodyOf(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, made := range slices.Backward(r.made) {
		if made == name {
			return r.bodies[i]
		}
	}
	return ""
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made, r.bodies = nil, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
