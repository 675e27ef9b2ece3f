package storagebucket_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

func newBucket(name string, change ...func(*storagev1.StorageBucket)) *storagev1.StorageBucket {
	bucket := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.StorageBucketSpec{Region: "us-east-1", SizeGB: 100},
	}
	for _, c := range change {
		c(bucket)
	}
	return bucket
}

func servedBy(config string) func(*storagev1.StorageBucket) {
	return func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = config }
}

func newConfig(name, endpoint, secret string) *storagev1.BucketProviderConfig {
	return &storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.BucketProviderConfigSpec{
			Endpoint: endpoint, SecretRef: storagev1.SecretReference{Name: secret},
			RateLimit: storagev1.RateLimit{QPS: 1000, Burst: 1000},
		},
	}
}

func newSecret(name, apiKey string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"apiKey": apiKey}}
}

// waitReady waits until a bucket is ready for its present spec.
func waitReady(t *testing.T, w *operatortest.World, name string) *storagev1.StorageBucket {
	t.Helper()
	return waitCondition(t, w, name, "Ready", metav1.ConditionTrue, "")
}

// waitCondition waits until a bucket's condition, for its present spec, has
// the status and, unless that is empty, the reason.
func waitCondition(t *testing.T, w *operatortest.World, name, conditionType string, status metav1.ConditionStatus, reason string) *storagev1.StorageBucket {
	t.Helper()
	var bucket *storagev1.StorageBucket
	operatortest.Eventually(t, func(context.Context) string {
		bucket = w.Bucket(t, name)
		if bucket == nil {
			return "there is no StorageBucket " + name
		}
		c := meta.FindStatusCondition(bucket.Status.Conditions, conditionType)
		if c == nil || c.Status != status || (reason != "" && c.Reason != reason) || c.ObservedGeneration != bucket.Generation {
			return fmt.Sprintf("%s of %s is not %s/%s at generation %d: %+v", conditionType, name, status, reason, bucket.Generation, bucket.Status)
		}
		return ""
	})
	return bucket
}

func waitConfigCondition(t *testing.T, w *operatortest.World, name, conditionType string, status metav1.ConditionStatus, reason string) *storagev1.BucketProviderConfig {
	t.Helper()
	var config *storagev1.BucketProviderConfig
	operatortest.Eventually(t, func(context.Context) string {
		config = w.Config(t, name)
		if config == nil {
			return "there is no BucketProviderConfig " + name
		}
		c := meta.FindStatusCondition(config.Status.Conditions, conditionType)
		if c == nil || c.Status != status || (reason != "" && c.Reason != reason) {
			return fmt.Sprintf("%s of %s is not %s/%s: %+v", conditionType, name, status, reason, config.Status)
		}
		return ""
	})
	return config
}

// waitGone waits until an object is no more.
func waitGone(t *testing.T, w *operatortest.World, object client.Object) {
	t.Helper()
	operatortest.Eventually(t, func(ctx context.Context) string {
		key := client.ObjectKey{Namespace: w.Namespace, Name: object.GetName()}
		err := w.Client.Get(ctx, key, object)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err == nil {
			return fmt.Sprintf("%T %s is still there: %+v", object, key.Name, object)
		}
		return ""
	})
}

func remove(t *testing.T, w *operatortest.World, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(w.Namespace)
		if err := client.IgnoreNotFound(w.Client.Delete(t.Context(), object)); err != nil {
			t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
		}
	}
}

func messageOf(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q does not mention %q", what, text, part)
		}
	}
}

// waitEvent waits until an event of that reason was recorded for the object,
// and tells whether its note has the parts.
func waitEvent(t *testing.T, w *operatortest.World, object, eventType, reason string, parts ...string) {
	t.Helper()
	note := ""
	operatortest.Eventually(t, func(ctx context.Context) string {
		list := &eventsv1.EventList{}
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			return err.Error()
		}
		for _, e := range list.Items {
			if e.Regarding.Name == object && e.Reason == reason && e.Type == eventType {
				note = e.Note
				return ""
			}
		}
		return fmt.Sprintf("no event %s/%s for %s among %d", eventType, reason, object, len(list.Items))
	})
	wantText(t, "the event "+reason, note, parts...)
}

// eventsOf are the events of that reason that were recorded for the object.
func eventsOf(t *testing.T, w *operatortest.World, object, reason string) []eventsv1.Event {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != object || e.Reason != reason })
}

// request is a request that the operator made.
type request struct{ method, path, body string }

func (r request) writes() bool { return r.method != http.MethodGet && r.method != http.MethodHead }

// isEvent tells events, which are best effort, from the writes that count.
func (r request) isEvent() bool { return strings.Contains(r.path, "/events") }

// recorder records the operator's requests to one side.
type recorder struct {
	// before, if set, is called before a request goes out.
	before func(request)

	mu   sync.Mutex
	made []request
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		made := request{method: req.Method, path: req.URL.Path}
		if req.Body != nil {
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			made.body = string(body)
			req = req.Clone(req.Context())
			req.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.mu.Lock()
		r.made = append(r.made, made)
		r.mu.Unlock()
		if r.before != nil {
			r.before(made)
		}
		return next.RoundTrip(req)
	})
}

func (r *recorder) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.made...)
}

// writesOf are the writes, other than events, to paths that end with suffix.
func (r *recorder) writesOf(suffixes ...string) []request {
	var found []request
	for _, made := range r.requests() {
		for _, suffix := range suffixes {
			if made.writes() && !made.isEvent() && strings.HasSuffix(made.path, suffix) {
				found = append(found, made)
			}
		}
	}
	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
