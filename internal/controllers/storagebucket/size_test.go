package storagebucket_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

func TestAProviderThatRoundsSizesIsAskedOnceAndTheBucketIsReady(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{SizeStep: 64, ActivateAfter: 100 * time.Millisecond})
	operator := w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos")) // of 100 GB
	w.WaitReady(t, "photos")
	bucket := w.WaitCondition(t, "photos", storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonSizeDiffers)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, storagev1.ConditionSizeApplied), "100", "128")
	wantText(t, "the message of Ready", messageOf(bucket.Status.Conditions, "Ready"), "; it has 128 GB, spec.sizeGB 100 is not applied: see SizeApplied")
	waitEvent(t, w, "photos", "Warning", storagev1.ReasonSizeDiffers)
	if n := len(callsOf(w, mockprovider.Resize)); n != 0 {
		t.Errorf("a bucket that was made larger than it was to be was resized %d times", n)
	}

	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	w.WaitReady(t, "photos")
	bucket = w.WaitCondition(t, "photos", storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonSizeDiffers)
	if bucket.Status.SizeGB != 256 {
		t.Errorf("status.sizeGB is %d, want 256", bucket.Status.SizeGB)
	}
	operator.Stop(t)
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 50 * time.Millisecond})
	gets := len(callsOf(w, mockprovider.Get))
	testkit.Eventually(t, func(_ context.Context) string {
		if len(callsOf(w, mockprovider.Get)) < gets+3 {
			return "the resyncs did not come"
		}
		return ""
	})
	if n := len(callsOf(w, mockprovider.Resize)); n != 1 {
		t.Errorf("the provider was asked to resize %d times, want once", n)
	}

	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 320 })
	w.WaitCondition(t, "photos", storagev1.ConditionSizeApplied, metav1.ConditionTrue, storagev1.ReasonApplied)
	waitEvent(t, w, "photos", "Normal", storagev1.ReasonResized, "from 256 to 320 GB")
	if message := messageOf(w.WaitReady(t, "photos").Status.Conditions, "Ready"); strings.Contains(message, "SizeApplied") {
		t.Errorf("the message of Ready is still %q", message)
	}
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 100 })
	w.WaitCondition(t, "photos", "Stalled", metav1.ConditionTrue, storagev1.ReasonResizeRefused)
}

func TestAResizeIsAnnouncedOnceItIsDone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options mockprovider.Options
		fault   mockprovider.Fault
		resized int
		status  metav1.ConditionStatus
		reason  string
	}{
		"at once":                         {resized: 1, status: metav1.ConditionTrue, reason: storagev1.ReasonApplied},
		"after a while":                   {fault: mockprovider.Fault{AfterWork: true, Body: `{"phase":"Active","sizeGB":100}`}, resized: 1, status: metav1.ConditionTrue, reason: storagev1.ReasonApplied},
		"although the answer was lost":    {fault: mockprovider.Fault{AfterWork: true, Drop: true}, resized: 1, status: metav1.ConditionTrue, reason: storagev1.ReasonApplied},
		"in words alone":                  {fault: mockprovider.Fault{Empty: true}, resized: 1, status: metav1.ConditionTrue, reason: storagev1.ReasonApplied},
		"not at all":                      {fault: mockprovider.Fault{Status: 405}, status: metav1.ConditionFalse, reason: storagev1.ReasonNotSupported},
		"not, as it is refused":           {fault: mockprovider.Fault{Status: 422}, status: metav1.ConditionFalse, reason: storagev1.ReasonResizeRefused},
		"to another size, which is noted": {options: mockprovider.Options{SizeStep: 300}, status: metav1.ConditionFalse, reason: storagev1.ReasonSizeDiffers},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, tc.options)
			w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 200 * time.Millisecond})
			w.Create(t, testkit.Bucket("photos"))
			w.WaitReady(t, "photos")
			if tc.fault != (mockprovider.Fault{}) {
				w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Resize, Fault: tc.fault})
			}
			testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 400 })
			w.WaitCondition(t, "photos", storagev1.ConditionSizeApplied, tc.status, tc.reason)
			if tc.resized > 0 {
				waitEvent(t, w, "photos", "Normal", storagev1.ReasonResized, "from 100 to 400 GB")
			}
			gets := len(callsOf(w, mockprovider.Get))
			testkit.Eventually(t, func(_ context.Context) string {
				if len(callsOf(w, mockprovider.Get)) < gets+4 {
					return "the resyncs did not come"
				}
				return ""
			})
			if n := len(eventsOf(t, w, "photos", storagev1.ReasonResized)); n != tc.resized {
				t.Errorf("there are %d events of it, want %d", n, tc.resized)
			}
		})
	}
}

// callsOf are the calls of one operation that the provider got.
func callsOf(w *testkit.World, operation mockprovider.Operation) []mockprovider.Call {
	var calls []mockprovider.Call
	for _, call := range w.Provider.Calls() {
		if call.Operation == operation {
			calls = append(calls, call)
		}
	}
	return calls
}
