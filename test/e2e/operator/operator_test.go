// Package operator_test runs the operator as users do: a Deployment of two
// replicas under its own ServiceAccount, in a namespace that takes restricted
// pods only.
package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// suite is one installation, which all parts of the rehearsal use in turn.
type suite struct {
	client   client.Client
	provider *installation.Provider
	begun    time.Time // what was asked before was another installation's
}

// TestOperator installs the operator once. The parts do not run in parallel:
// some of them harm the leader, and the last looks back on all.
func TestOperator(t *testing.T) {
	begun := time.Now()
	installation.Install(t)
	s := &suite{begun: begun, client: installation.Client(t), provider: installation.StartProvider(t, "--activate-after=1s")}
	t.Run("its namespace takes restricted pods only", s.restricted)
	t.Run("a bucket lives its life", s.life)
	t.Run("what a bucket owns is mended", s.children)
	t.Run("what was done while it was away is mended", s.away)
	t.Run("metrics are for those who may read them", s.metrics)
	t.Run("the leader is killed in the middle of its work", s.leaderKilled)
	t.Run("the leader is paused for longer than its lease", s.leaderPaused)
	t.Run("the leader is told to go", s.leaderDrained)
	t.Run("a provider's key is seen nowhere", s.canary)
	t.Run("its permissions are exact", s.permissions)
}

// namespace makes a namespace of users, served by the provider.
func (s *suite) namespace(t *testing.T) string {
	t.Helper()
	return s.namespaceAt(t, s.provider.Endpoint())
}

// namespaceAt is namespace, with the provider by the given one of its endpoints.
func (s *suite) namespaceAt(t *testing.T, endpoint string) string {
	t.Helper()
	namespace := testnode.Namespace(t)
	s.create(t, namespace,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"apiKey": canaryKey}},
		&storagev1.BucketProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Name: storagev1.DefaultBucketProviderConfigName},
			Spec: storagev1.BucketProviderConfigSpec{
				Endpoint: endpoint, SecretRef: storagev1.SecretReference{Name: "credentials"},
			},
		})
	return namespace
}

func (s *suite) create(t *testing.T, namespace string, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(namespace)
		if err := s.client.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

func (s *suite) delete(t *testing.T, namespace string, object client.Object) {
	t.Helper()
	object.SetNamespace(namespace)
	if err := s.client.Delete(t.Context(), object); client.IgnoreNotFound(err) != nil {
		t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
	}
}

// newBuckets are buckets called name-1 to name-n.
func newBuckets(name string, n int) []client.Object {
	var buckets []client.Object
	for i := range n {
		buckets = append(buckets, testkit.Bucket(fmt.Sprintf("%s-%d", name, i+1)))
	}
	return buckets
}

// waitAllReady waits until all buckets of a namespace are ready, as many as given.
func (s *suite) waitAllReady(t *testing.T, namespace string, n int) []storagev1.StorageBucket {
	t.Helper()
	list := &storagev1.StorageBucketList{}
	testnode.Eventually(t, fmt.Sprintf("%d buckets are ready", n), func(ctx context.Context) error {
		if err := s.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			c := meta.FindStatusCondition(list.Items[i].Status.Conditions, "Ready")
			if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == list.Items[i].Generation {
				ready++
			}
		}
		if ready != n || len(list.Items) != n {
			return fmt.Errorf("%d of %d are", ready, len(list.Items))
		}
		return nil
	})
	return list.Items
}

// expectOneEach compares what the provider has with the objects: one bucket each.
func (s *suite) expectOneEach(t *testing.T, buckets []storagev1.StorageBucket) {
	t.Helper()
	have, err := s.provider.Buckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, b := range have {
		known[b.ID] = b.Key
	}
	for _, b := range buckets {
		if _, ok := known[b.Status.ID]; !ok {
			t.Errorf("the provider does not have %s, which is StorageBucket %s", b.Status.ID, b.Name)
		}
		delete(known, b.Status.ID)
	}
	if len(known) > 0 {
		t.Errorf("the provider has %d buckets that are nobody's: %v", len(known), known)
	}
}

// removeAll deletes the buckets of a namespace, and waits until the provider has none.
func (s *suite) removeAll(t *testing.T, namespace string) {
	t.Helper()
	if err := s.client.DeleteAllOf(t.Context(), &storagev1.StorageBucket{}, client.InNamespace(namespace)); err != nil {
		t.Fatalf("deleting the buckets: %v", err)
	}
	testnode.Eventually(t, "the buckets are gone", func(ctx context.Context) error {
		list := &storagev1.StorageBucketList{}
		if err := s.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d are left", len(list.Items))
		}
		return nil
	})
	have, err := s.provider.Buckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(have) > 0 {
		t.Errorf("the provider still has %v", have)
	}
}
