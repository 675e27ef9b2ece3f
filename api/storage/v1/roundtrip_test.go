package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	storagev1ac "avalonhosting.example/bucketoperator/api/storage/v1/applyconfiguration/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func fullBucket(namespace string) *storagev1.StorageBucket {
	bucket, encrypted := testkit.Bucket("media-assets", testkit.InNamespace(namespace)), true
	bucket.Spec.Encrypted, bucket.Spec.ProviderRef, bucket.Spec.DeletionPolicy = &encrypted, "acme", storagev1.DeletionPolicyRetain
	bucket.Status = fullStatus()
	return bucket
}

func fullConfig(namespace string) *storagev1.BucketProviderConfig {
	return &storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "acme", Namespace: namespace},
		Spec: storagev1.BucketProviderConfigSpec{
			Type: storagev1.ProviderTypeHTTP, Endpoint: "https://buckets.example.com",
			SecretRef:      storagev1.SecretReference{Name: "key"},
			RateLimit:      storagev1.RateLimit{QPS: 5, Burst: 10},
			ResyncInterval: &metav1.Duration{Duration: time.Minute},
		},
		Status: storagev1.BucketProviderConfigStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{ready()}},
	}
}

func TestDeepCopiesAreEqualAndShareNothing(t *testing.T) {
	t.Parallel()
	bucket := fullBucket("a")
	copied := bucket.DeepCopy()
	if diff := cmp.Diff(bucket, copied); diff != "" {
		t.Fatalf("the copy differs (-want +got):\n%s", diff)
	}
	*copied.Spec.Encrypted, *copied.Status.Encrypted, copied.Status.Conditions[0].Reason = false, false, "Changed"
	if diff := cmp.Diff(fullBucket("a"), bucket); diff != "" {
		t.Errorf("changing the copy changed the original (-want +got):\n%s", diff)
	}
	config := fullConfig("a")
	copiedConfig := config.DeepCopy()
	if diff := cmp.Diff(config, copiedConfig); diff != "" {
		t.Fatalf("the copy differs (-want +got):\n%s", diff)
	}
	copiedConfig.Spec.ResyncInterval.Duration, copiedConfig.Status.Conditions[0].Reason = 0, "Changed"
	if diff := cmp.Diff(fullConfig("a"), config); diff != "" {
		t.Errorf("changing the copy changed the original (-want +got):\n%s", diff)
	}
}

// TestFullObjectsComeBackAsTheyWere sends every field that there is, strictly
// validated, and reads it back.
func TestFullObjectsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	c, namespace := admin(t), testplane.Namespace(t)
	bucket, config := fullBucket(namespace), fullConfig(namespace)
	for _, object := range []client.Object{bucket, config} {
		sent := object.DeepCopyObject().(client.Object)
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("creating: %v", err)
		}
		sent.SetResourceVersion(object.GetResourceVersion())
		if err := c.Status().Update(t.Context(), sent); err != nil {
			t.Fatalf("writing the status: %v", err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
	}
	want := fullBucket(namespace)
	if diff := cmp.Diff(want.Spec, bucket.Spec) + cmp.Diff(want.Status, bucket.Status); diff != "" {
		t.Errorf("the StorageBucket (-sent +read):\n%s", diff)
	}
	wantConfig := fullConfig(namespace)
	if diff := cmp.Diff(wantConfig.Spec, config.Spec) + cmp.Diff(wantConfig.Status, config.Status); diff != "" {
		t.Errorf("the BucketProviderConfig (-sent +read):\n%s", diff)
	}
}

// TestEmptyFieldsAreNotSent lets clients in Go create objects without a status
// and with optional fields left out.
func TestEmptyFieldsAreNotSent(t *testing.T) {
	t.Parallel()
	for want, object := range map[string]any{
		`{"metadata":{"name":"a"},"spec":{"region":"us-east-1","sizeGB":1}}`: &storagev1.StorageBucket{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.StorageBucketSpec{Region: "us-east-1", SizeGB: 1},
		},
		`{"metadata":{"name":"a"},"spec":{"endpoint":"https://a.example"}}`: &storagev1.BucketProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.BucketProviderConfigSpec{Endpoint: "https://a.example"},
		},
	} {
		got, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("as JSON (-want +got):\n%s", diff)
		}
	}
}

func TestApplyConfigurationsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	c, namespace := admin(t), testplane.Namespace(t)
	bucket := storagev1ac.StorageBucket("media-assets", namespace).WithSpec(storagev1ac.StorageBucketSpec().
		WithRegion("us-east-1").WithSizeGB(100).WithEncrypted(true).WithProviderRef("acme").WithDeletionPolicy(storagev1.DeletionPolicyRetain))
	config := storagev1ac.BucketProviderConfig("acme", namespace).WithSpec(storagev1ac.BucketProviderConfigSpec().
		WithType(storagev1.ProviderTypeHTTP).WithEndpoint("https://buckets.example.com").
		WithSecretRef(storagev1ac.SecretReference().WithName("key")).
		WithRateLimit(storagev1ac.RateLimit().WithQPS(5).WithBurst(10)).
		WithResyncInterval(metav1.Duration{Duration: time.Minute}))
	owner := client.FieldOwner("tester")
	if err := c.Apply(t.Context(), bucket, owner); err != nil {
		t.Fatalf("applying the StorageBucket: %v", err)
	}
	if err := c.Apply(t.Context(), config, owner); err != nil {
		t.Fatalf("applying the BucketProviderConfig: %v", err)
	}

	storedBucket, storedConfig := &storagev1.StorageBucket{}, &storagev1.BucketProviderConfig{}
	for name, object := range map[string]client.Object{"media-assets": storedBucket, "acme": storedConfig} {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			t.Fatal(err)
		}
	}
	extracted, err := storagev1ac.ExtractStorageBucket(storedBucket, "tester")
	if err != nil {
		t.Fatalf("extracting the StorageBucket: %v", err)
	}
	if diff := cmp.Diff(bucket.Spec, extracted.Spec); diff != "" {
		t.Errorf("the StorageBucket (-applied +extracted):\n%s", diff)
	}
	extractedConfig, err := storagev1ac.ExtractBucketProviderConfig(storedConfig, "tester")
	if err != nil {
		t.Fatalf("extracting the BucketProviderConfig: %v", err)
	}
	if diff := cmp.Diff(config.Spec, extractedConfig.Spec); diff != "" {
		t.Errorf("the BucketProviderConfig (-applied +extracted):\n%s", diff)
	}
}
