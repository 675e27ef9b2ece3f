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
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

// leaveInDoubt leaves an object whose create call was done and not answered,
// and no operator: there is one bucket, and nobody knows its id.
func leaveInDoubt(t *testing.T, w *operatortest.World) {
	t.Helper()
	w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{AfterWork: true, Drop: true}})
	var calls atomic.Int32
	operator := w.Start(t, operatortest.Settings{
		Backoff: controllers.Bounds{Min: time.Hour, Max: time.Hour},
		WrapProvider: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && calls.Add(1) > 1 {
					return nil, errors.New("down")
				}
				return next.RoundTrip(r)
			})
		},
	})
	w.Create(t, newBucket("photos"))
	waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
	operator.Stop(t)
}

func TestADamagedKeyLeaksNoBucket(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Create(t, newConfig("default", w.URL, ""))
	leaveInDoubt(t, w)
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) {
		b.Annotations[storagev1.IdempotencyKeyAnnotation] = "garbage"
	})
	remove(t, w, newBucket("photos"))
	w.Start(t, operatortest.Settings{})
	waitGone(t, w, newBucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestADamagedKeyOfABucketThatExistsIsMended(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, Resync: 300 * time.Millisecond})
	w.Create(t, newBucket("photos"))
	before := waitReady(t, w, "photos")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) {
		b.Annotations[storagev1.IdempotencyKeyAnnotation] = "garbage"
	})
	if _, err := w.Provider.Vanish(before.Status.ID); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, func(context.Context) string {
		if b := w.Bucket(t, "photos"); b.Status.ID == "" || b.Status.ID == before.Status.ID {
			return fmt.Sprintf("no other bucket was made: %+v", b.Status)
		}
		return ""
	})
	waitReady(t, w, "photos")
}

func TestABucketWhoseProviderRefWasChangedInDoubtCanBeDeleted(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Create(t, newConfig("default", w.URL, ""), newConfig("other", w.URL, ""))
	leaveInDoubt(t, w)
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = "other" })
	w.Start(t, operatortest.Settings{})
	waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonProviderChanged)
	remove(t, w, newBucket("photos"))
	waitGone(t, w, newBucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

// TestAnOutageOfTheAPIServerAfterTheCreateCallLosesNoID uses a provider that
// ignores keys: an id that is lost shows as a second bucket.
func TestAnOutageOfTheAPIServerAfterTheCreateCallLosesNoID(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{Minimal: true})
	var refusals atomic.Int32
	down := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
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
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, WrapAPI: down, WrapProvider: during(func() { refusals.Store(12) })})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")
	if buckets := w.Provider.Buckets(); len(buckets) != 1 {
		t.Errorf("the provider has %v, want one bucket", buckets)
	}
}

func TestVanishedBucketsAreMadeAgainUnderARateLimit(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{Resync: 5 * time.Second})
	w.Create(t, newConfig("default", w.URL, ""))
	const many = 8
	for i := range many {
		w.Create(t, newBucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range many {
		if _, err := w.Provider.Vanish(waitReady(t, w, fmt.Sprintf("bucket-%d", i)).Status.ID); err != nil {
			t.Fatal(err)
		}
	}
	operatortest.Modify(t, w, "default", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) {
		c.Spec.RateLimit = storagev1.RateLimit{QPS: 2, Burst: 2}
	})
	operatortest.Eventually(t, func(context.Context) string {
		if got := len(w.Provider.Buckets()); got < many {
			return fmt.Sprintf("%d of %d were made again", got, many)
		}
		return ""
	})
}
