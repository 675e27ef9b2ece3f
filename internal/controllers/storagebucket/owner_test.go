package storagebucket_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// TestABucketThatAProviderGivesTwiceIsNotDeletedWithTheSecondObject meets the
// operator with a provider that answers for another object's bucket.
func TestABucketThatAProviderGivesTwiceIsNotDeletedWithTheSecondObject(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Config("default", w.URL, ""), testkit.Bucket("first"))
	first := w.WaitReady(t, "first")
	rule := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Fault: mockprovider.Fault{
		Body: fmt.Sprintf(`{"id":%q,"region":"us-east-1","phase":"Active","sizeGB":100}`, first.Status.ID),
	}})
	w.Create(t, testkit.Bucket("second"))
	second := w.WaitCondition(t, "second", "Stalled", metav1.ConditionTrue, storagev1.ReasonIDConflict)
	wantText(t, "the message", messageOf(second.Status.Conditions, "Ready"), first.Status.ID, "StorageBucket first")
	rule.Remove()

	w.Remove(t, testkit.Bucket("second"))
	w.WaitGone(t, testkit.Bucket("second"))
	if buckets := w.Provider.Buckets(); len(buckets) != 1 {
		t.Fatalf("the provider has %v, want the bucket of the first object", buckets)
	}
	w.Remove(t, testkit.Bucket("first"))
	w.WaitGone(t, testkit.Bucket("first"))
	testkit.Eventually(t, func(context.Context) string {
		if left := w.Provider.Buckets(); len(left) != 0 {
			return fmt.Sprintf("the provider still has %v", left)
		}
		return ""
	})
}
