package storagebucket_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

// TestABucketThatAProviderGivesTwiceIsNotDeletedWithTheSecondObject meets the
// operator with a provider that answers for another object's bucket.
func TestABucketThatAProviderGivesTwiceIsNotDeletedWithTheSecondObject(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{})
	w.Create(t, newConfig("default", w.URL, ""), newBucket("first"))
	first := waitReady(t, w, "first")
	rule := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Fault: mockprovider.Fault{
		Body: fmt.Sprintf(`{"id":%q,"region":"us-east-1","phase":"Active","sizeGB":100}`, first.Status.ID),
	}})
	w.Create(t, newBucket("second"))
	second := waitCondition(t, w, "second", "Stalled", metav1.ConditionTrue, storagev1.ReasonIDConflict)
	wantText(t, "the message", messageOf(second.Status.Conditions, "Ready"), first.Status.ID, "StorageBucket first")
	rule.Remove()

	remove(t, w, newBucket("second"))
	waitGone(t, w, newBucket("second"))
	if buckets := w.Provider.Buckets(); len(buckets) != 1 {
		t.Fatalf("the provider has %v, want the bucket of the first object", buckets)
	}
	remove(t, w, newBucket("first"))
	waitGone(t, w, newBucket("first"))
	operatortest.Eventually(t, func(context.Context) string {
		if left := w.Provider.Buckets(); len(left) != 0 {
			return fmt.Sprintf("the provider still has %v", left)
		}
		return ""
	})
}
