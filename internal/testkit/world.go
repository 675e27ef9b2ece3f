package testkit

import (
	"context"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// World is a namespace of its own, a client that reads the API server itself,
// and a provider.
type World struct {
	// Namespace is the test's own.
	Namespace string
	// Client reads from and writes to the API server, without a cache.
	Client client.WithWatch
	// Provider is the mock provider.
	Provider *mockprovider.Provider
	// URL is the provider's.
	URL string
}

// NewWorld makes a World that goes with the test.
func NewWorld(t testing.TB, options mockprovider.Options) *World {
	t.Helper()
	mock, err := mockprovider.New(options)
	if err != nil {
		t.Fatalf("making the mock provider: %v", err)
	}
	server := httptest.NewServer(mock)
	t.Cleanup(server.Close)
	w := &World{Namespace: testplane.Namespace(t), Client: NewClient(t), Provider: mock, URL: server.URL}
	t.Cleanup(func() { w.letGo(t) })
	return w
}

// letGo takes the finalizers off what a test leaves, so that the namespace can
// go although no operator is there any more.
func (w *World) letGo(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	for _, list := range []client.ObjectList{&storagev1.StorageBucketList{}, &storagev1.BucketProviderConfigList{}, &corev1.SecretList{}} {
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			t.Errorf("listing what the test leaves: %v", err)
			continue
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			if len(object.GetFinalizers()) == 0 {
				return nil
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			if err := w.Client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
				t.Errorf("letting %s go: %v", object.GetName(), err)
			}
			return nil
		})
	}
}

// NewClient is a client for the API server that knows all of the operator's kinds.
func NewClient(t testing.TB) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(testplane.Config(), client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return c
}

// Create creates an object in the world's namespace.
func (w *World) Create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(w.Namespace)
		if err := w.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

// Bucket reads a StorageBucket; nil when there is none.
func (w *World) Bucket(t testing.TB, name string) *storagev1.StorageBucket {
	t.Helper()
	bucket := &storagev1.StorageBucket{}
	if !w.get(t, name, bucket) {
		return nil
	}
	return bucket
}

// Config reads a BucketProviderConfig; nil when there is none.
func (w *World) Config(t testing.TB, name string) *storagev1.BucketProviderConfig {
	t.Helper()
	config := &storagev1.BucketProviderConfig{}
	if !w.get(t, name, config) {
		return nil
	}
	return config
}

func (w *World) get(t testing.TB, name string, into client.Object) bool {
	t.Helper()
	err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		t.Fatalf("reading %T %s: %v", into, name, err)
	}
	return err == nil
}

// Modify changes an object as often as it takes to get past other writers.
func Modify[T client.Object](t testing.TB, w *World, name string, object T, change func(T)) T {
	t.Helper()
	Eventually(t, func(ctx context.Context) string {
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, object); err != nil {
			return err.Error()
		}
		base := object.DeepCopyObject().(client.Object)
		change(object)
		if err := w.Client.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
			return err.Error()
		}
		return ""
	})
	return object
}
