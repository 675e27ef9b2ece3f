package storagebucket_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

func TestAProviderThatRoundsSizesIsAskedOnceAndTheBucketIsReady(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{SizeStep: 64, ActivateAfter: 100 * time.Millisecond})
	operator := w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos")) // of 100 GB
	waitReady(t, w, "photos")
	bucket := waitCondition(t, w, "photos", storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonSizeDiffers)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, storagev1.ConditionSizeApplied), "100", "128")
	waitEvent(t, w, "photos", "Warning", storagev1.ReasonSizeDiffers)
	if n := len(callsOf(w, mockprovider.Resize)); n != 0 {
		t.Errorf("a bucket that was made larger than it was to be was resized %d times", n)
	}

	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	waitReady(t, w, "photos")
	bucket = waitCondition(t, w, "photos", storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonSizeDiffers)
	if bucket.Status.SizeGB != 256 {
		t.Errorf("status.sizeGB is %d, want 256", bucket.Status.SizeGB)
	}
	operator.Stop(t)
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, Resync: 50 * time.Millisecond})
	gets := len(callsOf(w, mockprovider.Get))
	operatortest.Eventually(t, func(_ context.Context) string {
		if len(callsOf(w, mockprovider.Get)) < gets+3 {
			return "the resyncs did not come"
		}
		return ""
	})
	if n := len(callsOf(w, mockprovider.Resize)); n != 1 {
		t.Errorf("the provider was asked to resize %d times, want once", n)
	}

	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 320 })
	waitCondition(t, w, "photos", storagev1.ConditionSizeApplied, metav1.ConditionTrue, storagev1.ReasonApplied)
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 100 })
	waitCondition(t, w, "photos", "Stalled", metav1.ConditionTrue, storagev1.ReasonResizeRefused)
}

// callsOf are the calls of one operation that the provider got.
func callsOf(w *operatortest.World, operation mockprovider.Operation) []mockprovider.Call {
	var calls []mockprovider.Call
	for _, call := range w.Provider.Calls() {
		if call.Operation == operation {
			calls = append(calls, call)
		}
	}
	return calls
}
