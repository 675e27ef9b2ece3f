package v1_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// edit changes an object that a user is about to send.
type edit func(*testing.T, *unstructured.Unstructured)

// set gives the field at a dotted path a value of any type.
func set(path string, value any) edit {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		if err := unstructured.SetNestedField(object.Object, value, strings.Split(path, ".")...); err != nil {
			t.Fatalf("setting %s: %v", path, err)
		}
	}
}

// unset removes the field at a dotted path.
func unset(path string) edit {
	return func(_ *testing.T, object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, strings.Split(path, ".")...)
	}
}

// bucketObject is the contract's manifest, changed by the edits.
func bucketObject(t *testing.T, namespace string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	return object(t, namespace, "StorageBucket", "media-assets",
		map[string]any{"region": "us-east-1", "sizeGB": int64(100), "encrypted": true}, edits)
}

// configObject is the smallest BucketProviderConfig, changed by the edits.
func configObject(t *testing.T, namespace string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	return object(t, namespace, "BucketProviderConfig", "acme", map[string]any{"endpoint": "https://buckets.example.com"}, edits)
}

func object(t *testing.T, namespace, kind, name string, spec map[string]any, edits []edit) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": storagev1.GroupVersion.String(),
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       spec,
	}}
	for _, e := range edits {
		e(t, o)
	}
	return o
}

// newClient is a client that sends what it is told to send, strictly validated.
func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("making the scheme: %v", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// admin is a client that may do everything.
func admin(t *testing.T) client.Client {
	t.Helper()
	return newClient(t, testplane.Config())
}

// fullStatus is a status with every field set, as far as the API server takes it.
func fullStatus() storagev1.StorageBucketStatus {
	encrypted := true
	return storagev1.StorageBucketStatus{
		ObservedGeneration: 1, Phase: storagev1.BucketPhaseActive, ID: "bucket-1", Endpoint: "https://buckets.example.com",
		Region: "us-east-1", SizeGB: 100, Encrypted: &encrypted, CreateOutcome: storagev1.CreateOutcomeRefused,
		Provider:   storagev1.ObservedProvider{Name: "acme", Revision: "0123456789abcdef"},
		Binding:    storagev1.Binding{Name: "media-assets-access"},
		Conditions: []metav1.Condition{ready()},
	}
}

func ready() metav1.Condition {
	return metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", Message: "bucket bucket-1 is active",
		ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
}

// wantRefusal checks that an error refuses an object and says each of the words.
func wantRefusal(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
}
