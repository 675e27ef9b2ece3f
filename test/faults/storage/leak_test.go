package storage_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// TestAStoppedOperatorLeavesNoGoroutine is a part of oracle 12. It runs alone:
// other tests' goroutines come and go.
func TestAStoppedOperatorLeavesNoGoroutine(t *testing.T) {
	w := testkit.NewWorld(t, mockprovider.Options{})
	ignored := goleak.IgnoreCurrent()
	o := w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("kept"))
	testkit.Eventually(t, func(context.Context) string {
		if bucket := w.Bucket(t, "kept"); bucket.Status.ID == "" {
			return "no bucket yet"
		}
		return ""
	})
	o.Stop(t)
	// controller-runtime's informers of a single namespace leave one behind when they are stopped.
	goleak.VerifyNone(t, ignored, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}
