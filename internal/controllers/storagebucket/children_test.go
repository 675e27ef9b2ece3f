package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestBehaviour06ADamagedSecretComesBack(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	bucket := w.WaitReady(t, "photos")
	original := testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, func(*corev1.Secret) string { return "" })
	if got := string(original.Data["id"]); got != bucket.Status.ID {
		t.Fatalf("the Secret has the id %q, the status %q", got, bucket.Status.ID)
	}
	if bucket.Status.Binding.Name != "photos-access" {
		t.Errorf("status.binding.name is %q", bucket.Status.Binding.Name)
	}
	asBefore := func(s *corev1.Secret) string { return cmp.Diff(original.Data, s.Data) }

	testkit.Modify(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["id"] = []byte("another") })
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, asBefore)

	testkit.Modify(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) { delete(s.Data, "id") })
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, asBefore)

	// Without its label the operator's cache no longer holds it.
	testkit.Modify(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) { s.Labels = nil; s.Data["id"] = []byte("another") })
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) string {
		if len(s.Labels) == 0 {
			return "the label is not back"
		}
		return asBefore(s)
	})

	w.Remove(t, testkit.Secret("photos-access", ""))
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) string {
		if s.UID == original.UID {
			return "still the old one"
		}
		return asBefore(s)
	})
}

func TestBehaviour06ADamagedServiceComesBack(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	endpoint := strings.Replace(w.URL, "127.0.0.1", "localhost", 1)
	w.Start(t, testkit.Settings{DefaultEndpoint: endpoint})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	right := func(s *corev1.Service) string {
		if s.Spec.Type != corev1.ServiceTypeExternalName || s.Spec.ExternalName != "localhost" {
			return fmt.Sprintf("the Service is %+v", s.Spec)
		}
		return ""
	}
	testkit.Modify(t, w, "photos", &corev1.Service{}, func(s *corev1.Service) { s.Spec.ExternalName = "evil.example" })
	testkit.WaitFor(t, w, "photos", &corev1.Service{}, right)
	old := testkit.WaitFor(t, w, "photos", &corev1.Service{}, right)
	w.Remove(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "photos"}})
	testkit.WaitFor(t, w, "photos", &corev1.Service{}, func(s *corev1.Service) string {
		if s.UID == old.UID {
			return "still the old one"
		}
		return right(s)
	})
}

func TestBehaviour06ASecretAndAServiceOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "photos-access"}, Data: map[string][]byte{"mine": []byte("precious")}}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "photos"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "mine.example"},
	}
	w.Create(t, secret, service, testkit.Bucket("photos"))
	bucket := w.WaitCondition(t, "photos", storagev1.ConditionCredentialsReady, metav1.ConditionFalse, storagev1.ReasonSecretConflict)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, storagev1.ConditionCredentialsReady), "photos-access")
	w.WaitCondition(t, "photos", storagev1.ConditionEndpointReady, metav1.ConditionFalse, storagev1.ReasonServiceConflict)
	for _, object := range []client.Object{secret, service} {
		version := object.GetResourceVersion()
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetResourceVersion() != version {
			t.Errorf("%T was touched: version %s became %s (%v)", object, version, object.GetResourceVersion(), err)
		}
	}

	w.Remove(t, secret, service)
	w.WaitReady(t, "photos")
}

func TestBehaviour07AVanishedBucketIsMadeAgainAtTheNextResync(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 500 * time.Millisecond})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	if _, err := w.Provider.Vanish(before.Status.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func(context.Context) string {
		if id := w.Bucket(t, "photos").Status.ID; id == "" || id == before.Status.ID {
			return "the id is " + id
		}
		return ""
	})
	after := w.WaitReady(t, "photos")
	waitEvent(t, w, "photos", corev1.EventTypeWarning, storagev1.ReasonBucketVanished)
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) string {
		if string(s.Data["id"]) != after.Status.ID {
			return "the Secret has the id " + string(s.Data["id"])
		}
		return ""
	})
	if buckets := w.Provider.Buckets(); len(buckets) != 1 || buckets[0].ID != after.Status.ID {
		t.Errorf("the provider has %v, want %s alone", buckets, after.Status.ID)
	}
	if before.Annotations[storagev1.IdempotencyKeyAnnotation] == after.Annotations[storagev1.IdempotencyKeyAnnotation] {
		t.Error("the new bucket was made under the key of the old one")
	}
}

func TestBehaviour07OnlyNotFoundMeansGone(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 405, 410, 429, 500, 502, 503} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{})
			w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 200 * time.Millisecond})
			w.Create(t, testkit.Bucket("photos"))
			before := w.WaitReady(t, "photos")
			rule := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Get, Fault: mockprovider.Fault{Status: status}})
			testkit.Eventually(t, func(context.Context) string {
				if rule.Hits() < 2 && status != 400 || rule.Hits() < 1 {
					return fmt.Sprintf("%d calls", rule.Hits())
				}
				return ""
			})
			rule.Remove()
			w.WaitReady(t, "photos")
			if after := w.Bucket(t, "photos").Status.ID; after != before.Status.ID || len(w.Provider.Buckets()) != 1 {
				t.Errorf("bucket %s became %s", before.Status.ID, after)
			}
		})
	}
}

func TestBehaviour07AWorkerNeverWaitsForABucketInTheMaking(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{ActivateAfter: time.Hour})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	const many = 40 // five times the workers
	for i := range many {
		w.Create(t, testkit.Bucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range many {
		w.WaitCondition(t, fmt.Sprintf("bucket-%d", i), storagev1.ConditionProvisioned, metav1.ConditionUnknown, storagev1.ReasonProvisioning)
	}
	if _, err := w.Provider.SetPhase(w.Bucket(t, "bucket-39").Status.ID, mockprovider.Active, ""); err != nil {
		t.Fatal(err)
	}
	w.WaitReady(t, "bucket-39")
}

func TestABucketThatTheProviderGaveUpIsFailed(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{ActivateAfter: time.Hour})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 300 * time.Millisecond})
	w.Create(t, testkit.Bucket("photos"))
	bucket := w.WaitCondition(t, "photos", storagev1.ConditionProvisioned, metav1.ConditionUnknown, storagev1.ReasonProvisioning)
	if _, err := w.Provider.SetPhase(bucket.Status.ID, mockprovider.Failed, "the disk is full"); err != nil {
		t.Fatal(err)
	}
	bucket = w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonBucketFailed)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "the disk is full")
	if bucket.Status.Phase != storagev1.BucketPhaseFailed {
		t.Errorf("the phase is %s", bucket.Status.Phase)
	}
	if _, err := w.Provider.SetPhase(bucket.Status.ID, mockprovider.Active, ""); err != nil {
		t.Fatal(err)
	}
	w.WaitReady(t, "photos")
}

func TestBehaviour09TheServiceFollowsTheEndpoint(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	// The calls go to the mock provider whatever the endpoint says.
	redirected := func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.URL.Host = strings.TrimPrefix(w.URL, "http://")
			r.URL.Scheme = "http"
			return next.RoundTrip(r)
		})
	}
	w.Start(t, testkit.Settings{WrapProvider: redirected})
	w.Create(t, testkit.Config("default", "http://buckets.example.com:8080", ""), testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	testkit.WaitFor(t, w, "photos", &corev1.Service{}, func(s *corev1.Service) string {
		if s.Spec.Type != corev1.ServiceTypeExternalName || s.Spec.ExternalName != "buckets.example.com" || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 8080 {
			return fmt.Sprintf("the Service is %+v", s.Spec)
		}
		return ""
	})

	move := func(endpoint string) {
		t.Helper()
		testkit.Modify(t, w, "default", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.Endpoint = endpoint })
	}
	for _, tc := range []struct {
		endpoint, address string
		family            discoveryv1.AddressType
	}{
		{"https://192.0.2.7", "192.0.2.7", discoveryv1.AddressTypeIPv4},
		{"https://[2001:db8::7]", "2001:db8::7", discoveryv1.AddressTypeIPv6},
		{"https://192.0.2.8", "192.0.2.8", discoveryv1.AddressTypeIPv4},
	} {
		move(tc.endpoint)
		testkit.WaitFor(t, w, "photos", &discoveryv1.EndpointSlice{}, func(s *discoveryv1.EndpointSlice) string {
			if s.AddressType != tc.family || len(s.Endpoints) != 1 || s.Endpoints[0].Addresses[0] != tc.address ||
				s.Labels[discoveryv1.LabelServiceName] != "photos" || *s.Ports[0].Port != 443 {
				return fmt.Sprintf("the EndpointSlice is %+v", s)
			}
			return ""
		})
		testkit.WaitFor(t, w, "photos", &corev1.Service{}, func(s *corev1.Service) string {
			if s.Spec.Type != corev1.ServiceTypeClusterIP || s.Spec.ClusterIP != corev1.ClusterIPNone || s.Spec.ExternalName != "" || s.Spec.Ports[0].Port != 443 {
				return fmt.Sprintf("the Service is %+v", s.Spec)
			}
			return ""
		})
		w.WaitReady(t, "photos")
	}

	move("http://buckets.example.com:8080")
	w.WaitGone(t, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "photos"}})
	testkit.WaitFor(t, w, "photos", &corev1.Service{}, func(s *corev1.Service) string {
		if s.Spec.Type != corev1.ServiceTypeExternalName || s.Spec.ExternalName != "buckets.example.com" {
			return fmt.Sprintf("the Service is %+v", s.Spec)
		}
		return ""
	})
	if len(w.Provider.Buckets()) != 1 {
		t.Errorf("the provider has %v", w.Provider.Buckets())
	}
}
