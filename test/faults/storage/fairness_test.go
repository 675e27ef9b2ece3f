package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// TestOnePoisonedBucketKeepsNoOtherWaiting is oracle 15, judged by counts: while
// the provider hangs for each call for one bucket, fifty others of the same
// provider become ready and go.
func TestOnePoisonedBucketKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	const healthy = 50
	w := testkit.NewWorld(t, mockprovider.Options{})
	poisoned := testkit.Bucket("poisoned")
	w.Create(t, poisoned)
	hanging := w.Provider.Faults().Add(mockprovider.Rule{
		Operation: mockprovider.Create, Key: string(poisoned.UID), Fault: mockprovider.Fault{Hang: true},
	})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, CallTimeout: 5 * time.Second})
	testkit.Eventually(t, func(context.Context) string {
		if hanging.Hits() == 0 {
			return "the provider does not hang yet"
		}
		return ""
	})
	for i := range healthy {
		w.Create(t, testkit.Bucket(fmt.Sprintf("healthy-%d", i)))
	}
	others := func(ctx context.Context) []storagev1.StorageBucket {
		list := &storagev1.StorageBucketList{}
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			t.Fatal(err)
		}
		var others []storagev1.StorageBucket
		for _, bucket := range list.Items {
			if bucket.Name != poisoned.Name {
				others = append(others, bucket)
			}
		}
		return others
	}
	testkit.Eventually(t, func(ctx context.Context) string {
		ready := 0
		for _, bucket := range others(ctx) {
			if meta.IsStatusConditionTrue(bucket.Status.Conditions, "Ready") {
				ready++
			}
		}
		if ready < healthy {
			return fmt.Sprintf("%d of %d are ready", ready, healthy)
		}
		return ""
	})
	for _, bucket := range others(t.Context()) {
		if err := w.Client.Delete(t.Context(), &bucket); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, func(ctx context.Context) string {
		if n := len(others(ctx)); n > 0 {
			return fmt.Sprintf("%d of %d are still there", n, healthy)
		}
		return ""
	})
	if bucket := w.Bucket(t, poisoned.Name); meta.IsStatusConditionTrue(bucket.Status.Conditions, "Ready") {
		t.Error("the poisoned bucket is ready: it has kept nobody waiting")
	}
}
