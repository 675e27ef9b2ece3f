package observability_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// state is an object as the API server has it, and what tools are to make of it.
type state struct {
	name    string
	object  *unstructured.Unstructured
	kstatus status.Status
}

const (
	bucketKind = "StorageBucket"
	configKind = "BucketProviderConfig"
)

// stage brings objects of both kinds into every state that they can be in.
type stage struct {
	*testkit.World
	states []state
}

func everyState(t *testing.T) []state {
	t.Helper()
	s := &stage{World: testkit.NewWorld(t, mockprovider.Options{})}
	s.Create(t, testkit.Config("default", s.URL, ""), testkit.Bucket("photos"))
	// Without any status, nothing says that there is more to come.
	s.add("bucket that the operator has not seen", s.read(t, bucketKind, "photos"), status.CurrentStatus)
	s.add("configuration that the operator has not seen", s.read(t, configKind, "default"), status.CurrentStatus)

	operator := s.Start(t, testkit.Settings{})
	s.configs(t)
	s.buckets(t)
	s.deletions(t)
	operator.Stop(t)
	s.changes(t)
	return s.states
}

func (s *stage) add(name string, object *unstructured.Unstructured, kstatus status.Status) {
	s.states = append(s.states, state{name: name, object: object, kstatus: kstatus})
}

func (s *stage) configs(t *testing.T) {
	t.Helper()
	s.Create(t,
		testkit.Config("keyless", s.URL, "missing"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "misspelt"}, StringData: map[string]string{"apikey": "x"}},
		testkit.Config("misspelt", s.URL, "misspelt"),
		testkit.Config("curious", "http://169.254.169.254", ""))
	for _, c := range []struct {
		state, name, status, reason string
		kstatus                     status.Status
	}{
		{"configuration that is ready", "default", "True", "Available", status.CurrentStatus},
		{"configuration that waits for its Secret", "keyless", "False", "SecretNotFound", status.InProgressStatus},
		{"configuration with a wrong Secret", "misspelt", "False", "SecretInvalid", status.FailedStatus},
		{"configuration with an endpoint that is refused", "curious", "False", "EndpointRefused", status.FailedStatus},
	} {
		s.add(c.state, s.waitFor(t, configKind, c.name, "Ready", c.status, c.reason), c.kstatus)
	}
}

func (s *stage) buckets(t *testing.T) {
	t.Helper()
	slow, err := mockprovider.New(mockprovider.Options{ActivateAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.Create(t,
		testkit.Config("slow", serve(t, slow), ""), testkit.Config("down", "http://127.0.0.1:1", ""),
		testkit.Bucket("in-the-making", testkit.ServedBy("slow")), testkit.Bucket("unanswered", testkit.ServedBy("down")),
		testkit.Bucket("homeless", testkit.ServedBy("none")), testkit.Bucket("given-up"),
		testkit.Bucket("refused", func(b *storagev1.StorageBucket) { b.Spec.Region = "atlantis-1" }))
	givenUp := s.waitFor(t, bucketKind, "given-up", "Ready", "True", "Available")
	if _, err := s.Provider.SetPhase(idOf(givenUp), mockprovider.Failed, "the disk is gone"); err != nil {
		t.Fatal(err)
	}
	touch(t, s.World, "given-up") // so that it is looked at

	for _, b := range []struct {
		state, name, status, reason string
		kstatus                     status.Status
	}{
		{"bucket that is ready", "photos", "True", "Available", status.CurrentStatus},
		{"bucket in the making", "in-the-making", "Unknown", "Provisioning", status.InProgressStatus},
		{"bucket whose provider does not answer", "unanswered", "False", "ProviderUnavailable", status.InProgressStatus},
		{"bucket without a provider", "homeless", "False", "ProviderNotFound", status.InProgressStatus},
		{"bucket that the provider refuses", "refused", "False", "SpecRefused", status.FailedStatus},
		{"bucket that the provider has given up", "given-up", "False", "BucketFailed", status.FailedStatus},
	} {
		s.add(b.state, s.waitFor(t, bucketKind, b.name, "Ready", b.status, b.reason), b.kstatus)
	}
}

func (s *stage) deletions(t *testing.T) {
	t.Helper()
	s.Create(t, testkit.Config("in-use", s.URL, ""), testkit.Bucket("user", testkit.ServedBy("in-use")), testkit.Bucket("going"), testkit.Bucket("blocked"))
	s.waitFor(t, bucketKind, "user", "Ready", "True", "Available")
	for name, fault := range map[string]mockprovider.Fault{
		"going":   {Status: http.StatusNoContent, Empty: true}, // it says so, and has not done it
		"blocked": {Status: http.StatusInternalServerError},
	} {
		id := idOf(s.waitFor(t, bucketKind, name, "Ready", "True", "Available"))
		s.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Delete, Path: id, Fault: fault})
	}
	s.Remove(t, testkit.Config("in-use", "", ""), testkit.Bucket("going"), testkit.Bucket("blocked"))
	s.add("bucket that is being deleted", s.waitFor(t, bucketKind, "going", "Ready", "False", "Deleting"), status.TerminatingStatus)
	s.add("bucket whose deletion is blocked", s.waitFor(t, bucketKind, "blocked", "DeletionBlocked", "True", "ProviderUnavailable"), status.TerminatingStatus)
	s.add("configuration that is kept for a bucket", s.waitFor(t, configKind, "in-use", "DeletionBlocked", "True", "InUse"), status.TerminatingStatus)
}

// changes changes objects when no operator is there to see it.
func (s *stage) changes(t *testing.T) {
	t.Helper()
	testkit.Modify(t, s.World, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB *= 2 })
	testkit.Modify(t, s.World, "default", testkit.Config("", "", ""), func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit.QPS = 7 })
	testkit.Modify(t, s.World, "refused", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB *= 2 })
	s.add("bucket with a change that the operator has not seen", s.read(t, bucketKind, "photos"), status.InProgressStatus)
	s.add("configuration with a change that the operator has not seen", s.read(t, configKind, "default"), status.InProgressStatus)
	s.add("refused bucket with a change that the operator has not seen", s.read(t, bucketKind, "refused"), status.InProgressStatus)
}

// touch changes a bucket's spec in what makes no difference to the provider.
func touch(t *testing.T, w *testkit.World, bucket string) {
	t.Helper()
	testkit.Modify(t, w, bucket, testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.DeletionPolicy = storagev1.DeletionPolicyRetain })
}

func idOf(bucket *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(bucket.Object, "status", "id")
	return id
}

func (s *stage) read(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(storagev1.GroupVersion.WithKind(kind))
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, object); err != nil {
		t.Fatalf("reading %s %s: %v", kind, name, err)
	}
	return object
}

// waitFor waits until a condition has a status and a reason, and returns the
// object as it is then.
func (s *stage) waitFor(t *testing.T, kind, name, conditionType, conditionStatus, reason string) *unstructured.Unstructured {
	t.Helper()
	var object *unstructured.Unstructured
	testkit.Eventually(t, func(context.Context) string {
		object = s.read(t, kind, name)
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			condition := c.(map[string]any)
			if condition["type"] == conditionType && condition["status"] == conditionStatus && condition["reason"] == reason {
				return ""
			}
		}
		return fmt.Sprintf("%s of %s %s is not %s/%s: %v", conditionType, kind, name, conditionStatus, reason, conditions)
	})
	return object
}
