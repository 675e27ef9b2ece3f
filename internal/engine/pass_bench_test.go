package engine_test

import (
	"context"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// BenchmarkPassOverSettledObject is what a resync, or a restart, costs for each
// object: a pass that finds all as wanted and writes nothing. It has four steps
// and two children, as a StorageBucket does.
func BenchmarkPassOverSettledObject(b *testing.B) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	subject := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "subject", UID: "1", Generation: 1},
		Spec:       storagev1.StorageBucketSpec{Region: "here", SizeGB: 1},
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(subject).WithStatusSubresource(subject).Build()
	reconcilerOn := func(c client.Client) *engine.Reconciler[object] {
		return engine.NewReconciler(kind{steps: bucketLike}, engine.Traits{Name: "Subject", Finalizer: finalizer, Annotations: []string{mark}}, engine.Options{
			Client: c, Live: c, Recorder: events.NewFakeRecorder(100), Scheme: scheme, Resync: time.Hour,
		})
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(subject)}
	if _, err := reconcilerOn(server).Reconcile(b.Context(), request); err != nil {
		b.Fatal(err)
	}

	cache := newFilledCache(b, server, request.NamespacedName)
	reconciler := reconcilerOn(cache)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reconciler.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}

// bucketLike are the steps of a kind that is as busy as StorageBucket.
func bucketLike(pass *engine.Pass, obj object) []engine.Step {
	hold := func(ctx context.Context) error {
		_, err := pass.EnsureFinalizer(ctx, map[string]string{mark: "1"})
		return err
	}
	nothing := func(context.Context) error { return nil }
	secret := func(ctx context.Context) error {
		data := map[string][]byte{"id": []byte("bucket-1")}
		return child.Ensure(ctx, pass, child.Child[*corev1.Secret]{
			Want:    &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name}, Data: data},
			Same:    func(live *corev1.Secret) bool { return len(live.Data) == len(data) },
			Correct: func(live *corev1.Secret) { live.Data = maps.Clone(data) },
		})
	}
	service := func(ctx context.Context) error {
		spec := corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "provider.example.com"}
		return child.Ensure(ctx, pass, child.Child[*corev1.Service]{
			Want:    &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name}, Spec: spec},
			Same:    func(live *corev1.Service) bool { return live.Spec.ExternalName == spec.ExternalName },
			Correct: func(live *corev1.Service) { live.Spec = spec },
		})
	}
	return []engine.Step{
		step("Resolved", hold),
		step("Provisioned", nothing),
		concurrently(step("SecretReady", secret)),
		concurrently(step("ServiceReady", service)),
	}
}

// filledCache reads as the manager's cache does, by a deep copy out of memory,
// and takes no writes: its client is nil.
type filledCache struct {
	client.Client
	subject *storagev1.StorageBucket
	secret  *corev1.Secret
	service *corev1.Service
}

func newFilledCache(b *testing.B, server client.Client, key client.ObjectKey) *filledCache {
	b.Helper()
	c := &filledCache{subject: &storagev1.StorageBucket{}, secret: &corev1.Secret{}, service: &corev1.Service{}}
	for _, object := range []client.Object{c.subject, c.secret, c.service} {
		if err := server.Get(b.Context(), key, object); err != nil {
			b.Fatal(err)
		}
	}
	return c
}

func (c *filledCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *storagev1.StorageBucket:
		c.subject.DeepCopyInto(into)
	case *corev1.Secret:
		c.secret.DeepCopyInto(into)
	case *corev1.Service:
		c.service.DeepCopyInto(into)
	}
	return nil
}
