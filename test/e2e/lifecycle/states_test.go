package lifecycle_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// The objects that a rehearsal finds, by the state that each is in.
const (
	active       = "active"
	provisioning = "provisioning"
	refused      = "refused"
	unreachable  = "unreachable"
	terminating  = "terminating"
	resizing     = "resizing" // its provider knows no resize

	defaultConfig = storagev1.DefaultBucketProviderConfigName
	slowConfig    = "slow"
	minimalConfig = "minimal"
	nowhereConfig = "nowhere"

	region        = "us-east-1"
	nowhereRegion = "atlantis-1" // which no provider has
)

// states is a namespace with an object in each state.
type states struct {
	client                  client.Client
	namespace               string
	provider, slow, minimal *installation.Provider
}

func newBucket(name, region, config string) *storagev1.StorageBucket {
	return testkit.Bucket(name, testkit.ServedBy(config), func(b *storagev1.StorageBucket) { b.Spec.Region = region })
}

func makeStates(t *testing.T) *states {
	t.Helper()
	s := &states{
		client:    installation.Client(t),
		provider:  installation.StartProvider(t, "--activate-after=0s"),
		slow:      installation.StartProvider(t, "--activate-after=1000h"),
		minimal:   installation.StartProvider(t, "--activate-after=0s", "--minimal"),
		namespace: testnode.Namespace(t),
	}
	if err := s.provider.Fail(t.Context(), `{"operation": "Delete", "status": 500}`); err != nil {
		t.Fatal(err)
	}
	config := func(name, endpoint string) client.Object {
		return &storagev1.BucketProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.BucketProviderConfigSpec{
				Endpoint: endpoint, SecretRef: storagev1.SecretReference{Name: "credentials"},
			},
		}
	}
	s.create(t,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"apiKey": "rehearsal"}},
		config(defaultConfig, s.provider.Endpoint()), config(slowConfig, s.slow.Endpoint()),
		config(minimalConfig, s.minimal.Endpoint()), config(nowhereConfig, "http://nowhere.invalid"),
		newBucket(active, region, ""), newBucket(terminating, region, ""), newBucket(refused, nowhereRegion, ""),
		newBucket(provisioning, region, slowConfig), newBucket(unreachable, region, nowhereConfig), newBucket(resizing, region, minimalConfig),
	)
	s.wait(t, active, "Ready", metav1.ConditionTrue, "")
	s.wait(t, terminating, "Ready", metav1.ConditionTrue, "")
	s.wait(t, resizing, "Ready", metav1.ConditionTrue, "")
	s.patch(t, resizing, `{"spec":{"sizeGB":200}}`)
	if err := s.client.Delete(t.Context(), s.bucket(t, terminating)); err != nil {
		t.Fatal(err)
	}
	s.settle(t)
	return s
}

// settle waits until each object is in its state.
func (s *states) settle(t *testing.T) {
	t.Helper()
	s.wait(t, active, "Ready", metav1.ConditionTrue, "")
	s.wait(t, resizing, storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonNotSupported)
	s.wait(t, terminating, "DeletionBlocked", metav1.ConditionTrue, "ProviderUnavailable")
	s.wait(t, refused, "Stalled", metav1.ConditionTrue, "SpecRefused")
	s.wait(t, provisioning, "Ready", metav1.ConditionUnknown, storagev1.ReasonProvisioning)
	s.wait(t, unreachable, "Ready", metav1.ConditionFalse, "ProviderUnavailable")
}

func (s *states) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(s.namespace)
		if err := s.client.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

func (s *states) patch(t *testing.T, name, patch string) {
	t.Helper()
	if err := s.client.Patch(t.Context(), s.bucket(t, name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (s *states) bucket(t *testing.T, name string) *storagev1.StorageBucket {
	t.Helper()
	b := &storagev1.StorageBucket{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// wait waits for a condition of a bucket's present spec.
func (s *states) wait(t *testing.T, name, condition string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	testnode.Eventually(t, fmt.Sprintf("%s of bucket %s is %s", condition, name, status), func(ctx context.Context) error {
		b := &storagev1.StorageBucket{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, b); err != nil {
			return err
		}
		c := meta.FindStatusCondition(b.Status.Conditions, condition)
		if c == nil || c.Status != status || reason != "" && c.Reason != reason || c.ObservedGeneration != b.Generation {
			return fmt.Errorf("at generation %d it is %+v; its status is %+v", b.Generation, c, b.Status)
		}
		return nil
	})
}
