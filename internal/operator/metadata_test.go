package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

const inUse = "storage.avalonhosting.example/in-use"

func TestNothingIsHeldWhoseSizeATenantChooses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	secret := secretMetadata()
	secret.ObjectMeta = metav1.ObjectMeta{
		Namespace: "team-a", Name: "key", UID: "1", ResourceVersion: "7", DeletionTimestamp: new(metav1.Unix(1, 0)), GenerateName: long,
		Labels: map[string]string{"a": long}, Annotations: map[string]string{"a": long}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long}},
		OwnerReferences: []metav1.OwnerReference{
			{UID: "2", Name: long},
			{APIVersion: "v1", Kind: long, Name: "o", UID: "3", Controller: new(true), BlockOwnerDeletion: new(true)},
		},
	}
	for i := range 1000 {
		secret.Finalizers = append(secret.Finalizers, fmt.Sprintf("storage.avalonhosting.example/other-%d", i))
	}
	secret.Finalizers = append(secret.Finalizers, inUse, long)
	c := &caches{finalizers: []string{inUse}}
	got, err := c.bare(secret)
	if err != nil {
		t.Fatal(err)
	}
	want := secretMetadata()
	want.ObjectMeta = metav1.ObjectMeta{
		Namespace: "team-a", Name: "key", UID: "1", ResourceVersion: "7", DeletionTimestamp: new(metav1.Unix(1, 0)),
		Finalizers:      []string{"storage.avalonhosting.example/other-0", inUse},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: long[:maxText], Name: "o", UID: "3", Controller: new(true)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is held (-want +got):\n%s", diff)
	}
}

// scene is a manager whose one controller counts the Secrets that it is told of.
type scene struct {
	namespace string
	admin     client.Client
	pool      *egress.Pool
	setup     *Setup
	told      chan types.NamespacedName
}

func start(t *testing.T) *scene {
	t.Helper()
	s := &scene{namespace: testplane.Namespace(t), pool: egress.NewPool(0), told: make(chan types.NamespacedName, 1000)}
	definition := buckets()
	definition.Cached = []Cached{
		{Object: &corev1.Secret{}, Select: Own},
		{Object: secretMetadata(), Select: Metadata, Finalizer: inUse},
	}
	definition.Indexes = []Index{{Object: secretMetadata(), Field: "held", Values: func(o client.Object) []string {
		if controllerutil.ContainsFinalizer(o, inUse) {
			return []string{"true"}
		}
		return nil
	}}}
	definition.SetUp = func(setup *Setup) error {
		s.setup = setup
		return s.watchSecrets()
	}
	definitions := []Definition{definition}
	logf.SetLogger(logr.Discard())
	mgr, err := ctrl.NewManager(testplane.Config(), ctrl.Options{
		Scheme: NewScheme(definitions), Cache: CacheOptions(definitions, []string{s.namespace}),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	fill, err := SetUp(t.Context(), mgr, definitions, []string{s.namespace}, Options{
		MaxConcurrentReconciles: 1, SkipNameValidation: true, Egress: egress.Settings{Pool: s.pool},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.admin, err = client.New(testplane.Config(), client.Options{Scheme: mgr.GetScheme()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	if err := fill(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) watchSecrets() error {
	secrets, err := s.setup.WatchMetadata(secretMetadata(), func(_ context.Context, secret client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(secret)}}
	})
	if err != nil {
		return err
	}
	options := controller.Options{SkipNameValidation: new(true)}
	options.Reconciler = reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
		s.told <- request.NamespacedName
		return reconcile.Result{}, nil
	})
	c, err := controller.New("secrets", s.setup.Manager, options)
	if err != nil {
		return err
	}
	return c.Watch(secrets)
}

// expectTold waits until the controller is told of a Secret.
func (s *scene) expectTold(t *testing.T, name string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case told := <-s.told:
			if told.Name == name {
				return
			}
		case <-deadline:
			t.Fatalf("the controller is not told of Secret %s", name)
		}
	}
}

// expectHeld waits until the caches hold a Secret once, whole or as metadata.
func (s *scene) expectHeld(t *testing.T, name string, whole bool) {
	t.Helper()
	key := types.NamespacedName{Namespace: s.namespace, Name: name}
	var wholeErr, metadataErr error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		wholeErr = s.setup.caches.objects.Get(ctx, key, &corev1.Secret{})
		metadataErr = s.setup.caches.metadata.Get(ctx, key, secretMetadata())
		there, absent := wholeErr, metadataErr
		if !whole {
			there, absent = metadataErr, wholeErr
		}
		return there == nil && apierrors.IsNotFound(absent), nil
	})
	if err != nil {
		t.Fatalf("Secret %s: whole: %v, as metadata: %v", name, wholeErr, metadataErr)
	}
}

func TestASecretIsHeldOnceAndFoundWhateverItsLabel(t *testing.T) {
	t.Parallel()
	s := start(t)
	ours := map[string]string{engine.Label: engine.LabelValue}
	for name, labels := range map[string]map[string]string{"plain": {"app": "x"}, "labelled": ours} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Labels: labels, Annotations: map[string]string{"big": "one"},
			Finalizers: []string{"example.com/a", "example.com/b", inUse},
		}}
		if err := s.admin.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			secret.Finalizers = nil
			if err := s.admin.Update(context.WithoutCancel(t.Context()), secret); err != nil {
				t.Error(err)
			}
		})
		s.expectTold(t, name)
		s.expectHeld(t, name, name == "labelled")

		got := secretMetadata()
		if err := s.setup.Metadata.Get(t.Context(), client.ObjectKeyFromObject(secret), got); err != nil {
			t.Fatal(err)
		}
		want := secretMetadata()
		want.ObjectMeta = metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
			Finalizers: []string{"example.com/a", inUse},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metadata of %s (-want +got):\n%s", name, diff)
		}
	}

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := s.setup.Metadata.List(t.Context(), list, client.InNamespace(s.namespace), client.MatchingFields{"held": "true"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"labelled", "plain"}) {
		t.Errorf("found by the index are %v", names)
	}
	if err := s.setup.Metadata.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "nobody's"}, secretMetadata()); !apierrors.IsNotFound(err) {
		t.Errorf("reading what is not there: %v", err)
	}
	if err := s.setup.Metadata.Get(t.Context(), types.NamespacedName{}, &corev1.Secret{}); err == nil {
		t.Error("a whole object is read as metadata")
	}
}

func TestASecretThatGetsTheLabelIsHeldOnceStill(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "moves"}}
	if err := s.admin.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.expectTold(t, "moves")
	s.expectHeld(t, "moves", false)
	for _, whole := range []bool{true, false} {
		secret.Labels = nil
		if whole {
			secret.Labels = map[string]string{engine.Label: engine.LabelValue}
		}
		if err := s.admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		s.expectTold(t, "moves")
		s.expectHeld(t, "moves", whole)
	}
}

func TestKindsCallTheOutsideByTheSettingsOfTheProcess(t *testing.T) {
	t.Parallel()
	s := start(t)
	if got := s.setup.Options.Egress; got.Pool != s.pool || got.Timeout != egress.DefaultTimeout || got.AllowLoopback {
		t.Errorf("a kind is given %+v", got)
	}
}
