package storagegroup_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/storagegroup"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/operator"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// start runs the group's controllers in a namespace, and returns a client that
// reads the API server itself.
func start(t *testing.T, namespace string) client.Client {
	t.Helper()
	logf.SetLogger(logr.Discard())
	definitions := []operator.Definition{storagegroup.Definition}
	mgr, err := ctrl.NewManager(testplane.Config(), ctrl.Options{
		Scheme: operator.NewScheme(definitions), Cache: operator.CacheOptions(definitions, []string{namespace}), Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	factory := &httpapi.Factory{}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = operator.SetUp(ctx, mgr, definitions, []string{namespace}, operator.Options{
		Providers:               provider.Registry{string(storagev1.ProviderTypeHTTP): factory},
		MaxConcurrentReconciles: 2, Resync: time.Hour, SkipNameValidation: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
		factory.Close()
	})
	admin, err := client.New(testplane.Config(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// The caches hold some of a Secret's finalizers only, and a Secret with the
// operator's label in another place.
func TestASecretIsKeptAndLetGoWithOthersFinalizersUntouched(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{
		"a user's": nil, "a user's with the operator's label": {engine.Label: engine.LabelValue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := testplane.Namespace(t)
			admin := start(t, namespace)
			others := []string{"example.com/a", "example.com/b", "example.com/c"}
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "key", Labels: labels, Finalizers: others},
				StringData: map[string]string{"apiKey": "k"},
			}
			config := &storagev1.BucketProviderConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "acme"},
				Spec: storagev1.BucketProviderConfigSpec{
					Endpoint: "https://buckets.example.com", SecretRef: storagev1.SecretReference{Name: "key"},
				},
			}
			// The Secret comes last: the configuration is woken by it.
			for _, object := range []client.Object{config, secret} {
				if err := admin.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
				if err := admin.Patch(context.WithoutCancel(t.Context()), secret, patch); err != nil {
					t.Error(err)
				}
			})
			expectFinalizers(t, admin, secret, append(slices.Clone(others), storagev1.ConfigFinalizer))
			if err := admin.Delete(t.Context(), config); err != nil {
				t.Fatal(err)
			}
			expectFinalizers(t, admin, secret, others)
		})
	}
}

func expectFinalizers(t *testing.T, admin client.Client, secret *corev1.Secret, want []string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		live := &corev1.Secret{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(secret), live); err != nil {
			return false, err
		}
		last = fmt.Sprint(live.Finalizers)
		return slices.Equal(live.Finalizers, want), nil
	})
	if err != nil {
		t.Fatalf("the Secret's finalizers are %s, want %v: %v", last, want, err)
	}
}
