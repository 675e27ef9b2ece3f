package storagebucket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// leaveInDoubt leaves an object whose create call was done and not answered,
// and no operator: there is one bucket, and nobody knows its id.
func leaveInDoubt(t *testing.T, w *testkit.World) {
	t.Helper()
	w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{AfterWork: true, Drop: true}})
	var calls atomic.Int32
	operator := w.Start(t, testkit.Settings{
		Backoff: controllers.Bounds{Min: time.Hour, Max: time.Hour},
		WrapProvider: func(next http.RoundTripper) http.RoundTripper {
			return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && calls.Add(1) > 1 {
					return nil, errors.New("down")
				}
				return next.RoundTrip(r)
			})
		},
	})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
	operator.Stop(t)
}

func TestADamagedKeyLeaksNoBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Create(t, testkit.Config("default", w.URL, ""))
	leaveInDoubt(t, w)
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) {
		b.Annotations[storagev1.IdempotencyKeyAnnotation] = "garbage"
	})
	w.Remove(t, testkit.Bucket("photos"))
	w.Start(t, testkit.Settings{})
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestADamagedKeyOfABucketThatExistsIsMended(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 300 * time.Millisecond})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) {
		b.Annotations[storagev1.IdempotencyKeyAnnotation] = "garbage"
	})
	if _, err := w.Provider.Vanish(before.Status.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func(context.Context) string {
		if b := w.Bucket(t, "photos"); b.Status.ID == "" || b.Status.ID == before.Status.ID {
			return fmt.Sprintf("no other bucket was made: %+v", b.Status)
		}
		return ""
	})
	w.WaitReady(t, "photos")
}

func TestABucketWhoseProviderRefWasChangedInDoubtCanBeDeleted(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Create(t, testkit.Config("default", w.URL, ""), testkit.Config("other", w.URL, ""))
	leaveInDoubt(t, w)
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = "other" })
	w.Start(t, testkit.Settings{})
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonProviderChanged)
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

// TestAnOutageOfTheAPIServerAfterTheCreateCallLosesNoID uses a provider that
// ignores keys: an id that is lost shows as a second bucket.
func TestAnOutageOfTheAPIServerAfterTheCreateCallLosesNoID(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{Minimal: true})
	var refusals atomic.Int32
	down := func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet || refusals.Load() <= 0 {
				return next.RoundTrip(r)
			}
			refusals.Add(-1)
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: leader changed","reason":"InternalError","code":500}`
			return &http.Response{
				StatusCode: http.StatusInternalServerError, Request: r,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
			}, nil
		})
	}
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapAPI: down, WrapProvider: during(func() { refusals.Store(12) })})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	if buckets := w.Provider.Buckets(); len(buckets) != 1 {
		t.Errorf("the provider has %v, want one bucket", buckets)
	}
}

func TestVanishedBucketsAreMadeAgainUnderARateLimit(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{Resync: 5 * time.Second})
	w.Create(t, testkit.Config("default", w.URL, ""))
	const many = 8
	for i := range many {
		w.Create(t, testkit.Bucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range many {
		if _, err := w.Provider.Vanish(w.WaitReady(t, fmt.Sprintf("bucket-%d", i)).Status.ID); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Modify(t, w, "default", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) {
		c.Spec.RateLimit = storagev1.RateLimit{QPS: 2, Burst: 2}
	})
	testkit.Eventually(t, func(context.Context) string {
		if got := len(w.Provider.Buckets()); got < many {
			return fmt.Sprintf("%d of %d were made again", got, many)
		}
		return ""
	})
}
