package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// during calls act once, while the first create call has been done and is not
// answered yet.
func during(act func()) func(http.RoundTripper) http.RoundTripper {
	var once sync.Once
	return func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if r.Method == http.MethodPost {
				once.Do(act)
			}
			return response, err
		})
	}
}

// TestTheIDIsNotLostWhateverHappensDuringTheCreateCall uses a provider that
// ignores idempotency keys: an id that is thrown away shows as a second bucket.
func TestTheIDIsNotLostWhateverHappensDuringTheCreateCall(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(t *testing.T, w *testkit.World, operator func() *testkit.Operator){
		"the spec is edited": func(t *testing.T, w *testkit.World, _ func() *testkit.Operator) {
			testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
		},
		"labels are edited": func(t *testing.T, w *testkit.World, _ func() *testkit.Operator) {
			testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Labels = map[string]string{"a": "b"} })
		},
		"the operator is told to stop": func(_ *testing.T, _ *testkit.World, operator func() *testkit.Operator) {
			operator().Kill()
		},
		"somebody's Secret appears": func(t *testing.T, w *testkit.World, _ func() *testkit.Operator) {
			w.Create(t, testkit.Secret("photos-access", "mine"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{Minimal: true})
			var operator *testkit.Operator
			started := make(chan struct{})
			operator = w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapProvider: during(func() {
				<-started
				act(t, w, func() *testkit.Operator { return operator })
			})})
			close(started)
			w.Create(t, testkit.Bucket("photos"))
			testkit.Eventually(t, func(context.Context) string {
				if w.Bucket(t, "photos").Status.ID == "" {
					return "there is no id"
				}
				return ""
			})
			operator.Stop(t)
			w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
			w.Remove(t, testkit.Secret("photos-access", ""))
			bucket := w.WaitReady(t, "photos")
			if buckets := w.Provider.Buckets(); len(buckets) != 1 || buckets[0].ID != bucket.Status.ID {
				t.Errorf("the provider has %v, the status says %s", buckets, bucket.Status.ID)
			}
		})
	}
}

func TestADeletionDuringTheCreateCallLeaksNoBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{Minimal: true})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapProvider: during(func() { w.Remove(t, testkit.Bucket("photos")) })})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

// TestARepeatedCreateCallIsTheSameCall has the spec changed to what the
// provider would refuse, while nobody knows whether the first call was done.
func TestARepeatedCreateCallIsTheSameCall(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{AfterWork: true, Drop: true}})
	operator := w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapProvider: func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && len(w.Provider.Calls()) > 0 {
				<-r.Context().Done() // the retry waits for the next operator
				return nil, r.Context().Err()
			}
			return next.RoundTrip(r)
		})
	}, CallTimeout: 300 * time.Millisecond})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
	operator.Stop(t)
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = mockprovider.MaxSizeGB + 1 })
	w.Remove(t, testkit.Bucket("photos"))
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestAStray404LosesNoBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	// Between the failure and the change of the spec below nothing is tried.
	never := controllers.Bounds{Min: time.Hour, Max: time.Hour}
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 200 * time.Millisecond, Backoff: never})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	// What a load balancer says that knows no provider for the moment.
	stray := w.Provider.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Status: 404, ContentType: "text/html", Body: "default backend"}})
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "EndpointWrong")
	if id := w.Bucket(t, "photos").Status.ID; id != before.Status.ID {
		t.Errorf("the id %s became %q", before.Status.ID, id)
	}
	stray.Remove()
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	after := w.WaitReady(t, "photos")
	if after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the provider has %v", before.Status.ID, after.Status.ID, w.Provider.Buckets())
	}
}

func TestTheDefaultEndpointIsNoRaceWithADefaultConfiguration(t *testing.T) {
	t.Parallel()
	w, configured := testkit.NewWorld(t, mockprovider.Options{}), testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Config("default", configured.URL, ""), testkit.Bucket("photos")) // as kubectl apply -f does
	w.WaitReady(t, "photos")
	if astray := w.Provider.Buckets(); len(astray) != 0 || len(configured.Provider.Buckets()) != 1 {
		t.Errorf("the default endpoint has %v, the configured provider %v", astray, configured.Provider.Buckets())
	}
}

func TestSecretsAreReleasedWhoeverGoesFirst(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("shared", "key"), testkit.Config("one", w.URL, "shared"), testkit.Config("two", w.URL, "shared"))
	w.WaitConfigCondition(t, "one", "Ready", metav1.ConditionTrue, "")
	w.WaitConfigCondition(t, "two", "Ready", metav1.ConditionTrue, "")
	w.Remove(t, testkit.Config("one", "", ""), testkit.Config("two", "", ""))
	waitReleased(t, w, "shared")

	// By hand, against the rules, and while nobody looks.
	w.Create(t, testkit.Config("three", w.URL, "shared"))
	w.WaitConfigCondition(t, "three", "Ready", metav1.ConditionTrue, "")
	operator.Stop(t)
	testkit.Modify(t, w, "three", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Finalizers = nil })
	w.Remove(t, testkit.Config("three", "", ""))
	w.WaitGone(t, testkit.Config("three", "", ""))
	w.Start(t, testkit.Settings{})
	waitReleased(t, w, "shared")
}

func waitReleased(t *testing.T, w *testkit.World, name string) {
	t.Helper()
	testkit.Eventually(t, func(ctx context.Context) string {
		secret := &corev1.Secret{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, secret); err != nil {
			return err.Error()
		}
		if slices.Contains(secret.Finalizers, storagev1.ConfigFinalizer) {
			return fmt.Sprintf("Secret %s has the finalizers %v", name, secret.Finalizers)
		}
		return ""
	})
}

// TestAResyncDoesNotComeRoundAtOnce counts the reads of objects whose passes
// compare nothing: a configuration, and a bucket without a provider.
func TestAResyncDoesNotComeRoundAtOnce(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	api := &testkit.Recorder{}
	w.Start(t, testkit.Settings{Resync: 300 * time.Millisecond, WrapAPI: api.Wrap})
	w.Create(t, testkit.Secret("credentials", "key"), testkit.Config("lonely", w.URL, "credentials"), testkit.Bucket("photos", testkit.ServedBy("nobody")))
	w.WaitConfigCondition(t, "lonely", "Ready", metav1.ConditionTrue, "")
	start := time.Now()
	aWholeLife(t)
	reads := 0
	for _, r := range api.Requests() {
		if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/secrets/credentials") {
			reads++
		}
	}
	// The passes after creation, and one each 270 ms.
	if most := 12 + int(time.Since(start)/(270*time.Millisecond)); reads > most {
		t.Errorf("the Secret was read %d times, at most %d are right", reads, most)
	}
}

func TestAnImmutableSecretIsReplacedWhenItMustChange(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 300 * time.Millisecond})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	immutable := true
	testkit.Modify(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) { s.Immutable = &immutable })
	if _, err := w.Provider.Vanish(before.Status.ID); err != nil {
		t.Fatal(err)
	}
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) string {
		if string(s.Data["id"]) == before.Status.ID {
			return "the Secret still has the old id"
		}
		return ""
	})
	w.WaitReady(t, "photos")
}

func TestOne404IsNotEnoughToMakeAnotherBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 200 * time.Millisecond})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	stray := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Get, Times: 1, Fault: mockprovider.Fault{Status: 404}})
	testkit.Eventually(t, func(context.Context) string {
		gets := 0
		for _, c := range w.Provider.Calls() {
			if c.Operation == mockprovider.Get {
				gets++
			}
		}
		if stray.Hits() == 0 || gets < 4 {
			return fmt.Sprintf("%d reads", gets)
		}
		return ""
	})
	after := w.WaitReady(t, "photos")
	if after.Status.ID != before.Status.ID || after.Status.VanishedID != "" || len(w.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the provider has %v", before.Status.ID, after.Status.ID, w.Provider.Buckets())
	}
}

func TestAnotherAccountsSecretForAWhileLosesNoBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"ours": "acme", "theirs": "other"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("credentials", "ours"), testkit.Config("default", w.URL, "credentials"), testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	setKey := func(key string) {
		testkit.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte(key) })
	}
	setKey("theirs")
	bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonBucketMissing)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "Secret", "change it back")
	setKey("ours")
	after := w.WaitReady(t, "photos")
	if after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the provider has %v", before.Status.ID, after.Status.ID, w.Provider.Buckets())
	}
}

// TestAConflictOnARepeatedCreateCallIsNotARefusal has the provider say, for a
// while, that it is still at work on the call whose answer was lost.
func TestAConflictOnARepeatedCreateCallIsNotARefusal(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]bool{"and the bucket is wanted": false, "and the bucket is deleted meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{})
			faults := w.Provider.Faults()
			faults.Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{AfterWork: true, Drop: true}})
			atWork := faults.Add(mockprovider.Rule{Operation: mockprovider.Create, Fault: mockprovider.Fault{Status: http.StatusConflict}})
			w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Poll: controllers.Bounds{Min: 20 * time.Millisecond, Max: time.Minute}})
			w.Create(t, testkit.Bucket("photos"))
			w.WaitCondition(t, "photos", "Ready", metav1.ConditionUnknown, storagev1.ReasonCreateInProgress)
			if leave {
				w.Remove(t, testkit.Bucket("photos"))
				hits := atWork.Hits()
				testkit.Eventually(t, func(context.Context) string {
					if atWork.Hits() == hits {
						return "the create call was not repeated"
					}
					return ""
				})
				atWork.Remove()
				w.WaitGone(t, testkit.Bucket("photos"))
				if left := w.Provider.Buckets(); len(left) != 0 {
					t.Errorf("the provider still has %v", left)
				}
				return
			}
			atWork.Remove()
			bucket := w.WaitReady(t, "photos")
			if buckets := w.Provider.Buckets(); len(buckets) != 1 || buckets[0].ID != bucket.Status.ID {
				t.Errorf("the provider has %v, the status says %s", buckets, bucket.Status.ID)
			}
		})
	}
}

// TestAConflictThatLastsIsToldAndProvesNothing: the bucket may exist all the same.
func TestAConflictThatLastsIsToldAndProvesNothing(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	faults := w.Provider.Faults()
	faults.Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{AfterWork: true, Drop: true}})
	atWork := faults.Add(mockprovider.Rule{Operation: mockprovider.Create, Fault: mockprovider.Fault{Status: http.StatusConflict}})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Poll: controllers.Bounds{Min: 20 * time.Millisecond, Max: 100 * time.Millisecond}})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", "Stalled", metav1.ConditionTrue, "SpecRefused")
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", "DeletionBlocked", metav1.ConditionTrue, "SpecRefused")
	atWork.Remove()
	// Stalled deletions go on when something changes, or at the resync.
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}
