package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

func TestBehaviour01FinalizerAndKeyAreOnTheObjectInOneWriteBeforeTheFirstCreateCall(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	api := &testkit.Recorder{}
	var atCreate atomic.Pointer[storagev1.StorageBucket]
	var writesBefore atomic.Int32
	provider := &testkit.Recorder{Before: func(r testkit.Request) {
		if r.Method == http.MethodPost && atCreate.Load() == nil {
			writesBefore.Store(int32(len(api.WritesTo("/storagebuckets/photos", "/storagebuckets/photos/status"))))
			atCreate.Store(w.Bucket(t, "photos"))
		}
	}}
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapAPI: api.Wrap, WrapProvider: provider.Wrap})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")

	seen := atCreate.Load()
	if !controllerutil.ContainsFinalizer(seen, "storage.avalonhosting.example/bucket-cleanup") {
		t.Errorf("at the first create call the object had the finalizers %v", seen.Finalizers)
	}
	if key, sent := seen.Annotations[storagev1.IdempotencyKeyAnnotation], w.Provider.Buckets()[0].Key; key == "" || key != sent {
		t.Errorf("at the first create call the object had the key %q, sent was %q", key, sent)
	}
	if got := writesBefore.Load(); got != 1 {
		t.Errorf("%d writes to the object came before the first create call, want 1", got)
	}
}

func TestCreatingABucketTakesTheFewestWrites(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	api, provider := &testkit.Recorder{}, &testkit.Recorder{}
	// A host name, as an ExternalName Service takes one write and an IP two.
	endpoint := strings.Replace(w.URL, "127.0.0.1", "localhost", 1)
	w.Start(t, testkit.Settings{DefaultEndpoint: endpoint, WrapAPI: api.Wrap, WrapProvider: provider.Wrap})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")

	got := map[string]int{}
	for _, r := range api.Requests() {
		if r.Writes() && !r.IsEvent() {
			got[r.Method+" "+r.Path[strings.LastIndex(r.Path, w.Namespace)+len(w.Namespace):]]++
		}
	}
	want := map[string]int{
		"PATCH /storagebuckets/photos": 1, "POST /secrets": 1, "POST /services": 1, "PATCH /storagebuckets/photos/status": 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("creating a bucket took the writes %v, want %v", got, want)
	}
	if calls := provider.Requests(); len(calls) != 1 {
		t.Errorf("creating a bucket took the provider calls %v, want one", calls)
	}
}

func TestBehaviour02ACrashBetweenCreateCallAndStatusWriteLeavesOneBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	var first *testkit.Operator
	created := make(chan struct{})
	// The answer is lost and the process with it.
	dying := func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if r.Method == http.MethodPost {
				if err == nil {
					_ = response.Body.Close()
				}
				first.Kill()
				close(created)
				return nil, context.Canceled
			}
			return response, err
		})
	}
	first = w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapProvider: dying})
	w.Create(t, testkit.Bucket("photos"))
	<-created
	first.Stop(t)
	if id := w.Bucket(t, "photos").Status.ID; id != "" {
		t.Fatalf("the crash came too late: the status has the id %s", id)
	}

	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	bucket := w.WaitReady(t, "photos")
	buckets := w.Provider.Buckets()
	if len(buckets) != 1 || buckets[0].ID != bucket.Status.ID {
		t.Errorf("the provider has %v, the status says %s: want one and the same bucket", buckets, bucket.Status.ID)
	}
}

func TestBehaviour02ADeletionDuringTheOutageLeaksNoBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	var first *testkit.Operator
	created := make(chan struct{})
	first = w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapProvider: func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			first.Kill()
			close(created)
			return nil, context.Canceled
		})
	}})
	w.Create(t, testkit.Bucket("photos"))
	<-created
	first.Stop(t)
	w.Remove(t, testkit.Bucket("photos"))

	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestAMinimalProviderIsEnough(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{Minimal: true, ActivateAfter: 50 * time.Millisecond})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	encrypted := true
	w.Create(t, testkit.Bucket("photos", func(b *storagev1.StorageBucket) { b.Spec.Encrypted = &encrypted }))
	w.WaitReady(t, "photos")
	w.WaitCondition(t, "photos", storagev1.ConditionSizeApplied, metav1.ConditionUnknown, storagev1.ReasonNotReported)
	w.WaitCondition(t, "photos", storagev1.ConditionEncryptionApplied, metav1.ConditionUnknown, storagev1.ReasonNotReported)

	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	w.WaitCondition(t, "photos", storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonNotSupported)
	bucket := w.WaitReady(t, "photos")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "it has 100 GB, spec.sizeGB 200 is not applied: see SizeApplied")

	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestAResizeReachesTheProvider(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	if bucket := w.WaitReady(t, "photos"); bucket.Status.SizeGB != 200 || w.Provider.Buckets()[0].SizeGB != 200 {
		t.Errorf("status has %d GB, the provider %d, want 200", bucket.Status.SizeGB, w.Provider.Buckets()[0].SizeGB)
	}
}

func TestARefusedShrinkIsReportedAndUndoneByGoingBack(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 50 })
	bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonResizeRefused)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "spec.sizeGB", "50", "100")
	if bucket.Status.Phase != storagev1.BucketPhaseActive {
		t.Errorf("the phase is %s: the bucket still serves", bucket.Status.Phase)
	}
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 100 })
	w.WaitReady(t, "photos")
}

func TestABackupRestoredIntoANewClusterFindsItsBucketAgain(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	operator.Stop(t)

	// What a backup keeps: metadata and spec. The old object goes without its operator.
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Finalizers = nil })
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	w.Create(t, testkit.Bucket("photos", func(b *storagev1.StorageBucket) {
		b.Annotations, b.Finalizers = before.Annotations, before.Finalizers
	}))

	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	after := w.WaitReady(t, "photos")
	if after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the provider has %v", before.Status.ID, after.Status.ID, w.Provider.Buckets())
	}
}

func TestAKeyCopiedFromAnotherObjectIsRefused(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("victim"))
	victim := w.WaitReady(t, "victim")
	w.Create(t, testkit.Bucket("thief", func(b *storagev1.StorageBucket) {
		b.Annotations = map[string]string{storagev1.IdempotencyKeyAnnotation: victim.Annotations[storagev1.IdempotencyKeyAnnotation]}
	}))
	w.WaitCondition(t, "thief", "Ready", metav1.ConditionFalse, storagev1.ReasonKeyInvalid)
	w.Remove(t, testkit.Bucket("thief"))
	w.WaitGone(t, testkit.Bucket("thief"))
	if buckets := w.Provider.Buckets(); len(buckets) != 1 || buckets[0].ID != victim.Status.ID {
		t.Errorf("the provider has %v, want the victim's bucket alone", buckets)
	}
}

func TestProviderRefMayBeCorrectedUntilTheBucketExists(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Config("good", w.URL, ""), testkit.Config("bad", "http://127.0.0.1:1", ""))
	w.Create(t, testkit.Bucket("photos", testkit.ServedBy("bad")))
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = "good" })
	w.WaitReady(t, "photos")

	bucket := w.Bucket(t, "photos")
	bucket.Spec.ProviderRef = "bad"
	err := w.Client.Update(t.Context(), bucket)
	if err == nil {
		t.Fatal("providerRef of a bucket that exists could be changed")
	}
	wantText(t, "the refusal", err.Error(), "providerRef")
}

func TestAStrippedFinalizerAndKeyComeBack(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) {
		b.Finalizers, b.Annotations = nil, nil
	})
	testkit.Eventually(t, func(context.Context) string {
		b := w.Bucket(t, "photos")
		if !controllerutil.ContainsFinalizer(b, storagev1.BucketFinalizer) || b.Annotations[storagev1.IdempotencyKeyAnnotation] == "" {
			return fmt.Sprintf("finalizers %v, annotations %v", b.Finalizers, b.Annotations)
		}
		return ""
	})
}

func TestABucketOfNoProviderSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"key": "acme"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Bucket("photos"), testkit.Bucket("music", testkit.ServedBy("acme")))
	bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonProviderNotFound)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "spec.providerRef", "default")
	bucket = w.WaitCondition(t, "music", "Ready", metav1.ConditionFalse, storagev1.ReasonProviderNotFound)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "BucketProviderConfig acme", "create it, or correct spec.providerRef")

	w.Create(t, testkit.Config("default", w.URL, "credentials"), testkit.Config("acme", w.URL, "credentials"))
	bucket = w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonSecretNotFound)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "Secret credentials", "spec.secretRef.name of BucketProviderConfig default")

	w.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"token": "key"}})
	bucket = w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "SecretInvalid")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "Secret credentials (of BucketProviderConfig default) has no key apiKey: put")
	config := w.WaitConfigCondition(t, "acme", "Ready", metav1.ConditionFalse, "SecretInvalid")
	wantText(t, "the configuration's message", messageOf(config.Status.Conditions, "Ready"), "Secret credentials has no key apiKey: put")

	testkit.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data = map[string][]byte{"apiKey": []byte("wrong")} })
	bucket = w.WaitCondition(t, "music", "Ready", metav1.ConditionFalse, "Unauthorized")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "correct the key apiKey of Secret credentials (of BucketProviderConfig acme)")

	testkit.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data = map[string][]byte{"apiKey": []byte("key")} })
	w.WaitReady(t, "photos")
	w.WaitReady(t, "music")
}

func TestABucketOfAProviderThatIsNotThereSaysWhoseEndpointToCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings testkit.Settings
		config   string
		want     string
	}{
		"a configuration's":      {config: "dead", want: "spec.endpoint of BucketProviderConfig dead"},
		"the operator's default": {settings: testkit.Settings{DefaultEndpoint: "http://127.0.0.1:1"}, want: "the operator's --default-provider-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{})
			w.Start(t, tc.settings)
			w.Create(t, testkit.Config("dead", "http://127.0.0.1:1", ""), testkit.Bucket("photos", testkit.ServedBy(tc.config)))
			bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
			wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "connecting to 127.0.0.1:1 was refused: check", tc.want)
		})
	}
}

func TestABucketThatNothingServesSaysWhichConfigurationsThereAre(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{})
	waitMessage := func(end string) {
		t.Helper()
		testkit.WaitFor(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) string {
			if message := messageOf(b.Status.Conditions, "Ready"); !strings.HasSuffix(message, end) {
				return fmt.Sprintf("the message is %q, want it to end with %q", message, end)
			}
			return ""
		})
	}
	w.Create(t, testkit.Bucket("photos"))
	waitMessage(": create a BucketProviderConfig called default, which the administrator of the namespace may")
	for _, name := range []string{"prod", "acme"} {
		w.Create(t, testkit.Config(name, w.URL, ""))
	}
	waitMessage(": create a BucketProviderConfig called default, or set spec.providerRef to one of: acme, prod")
	for _, name := range []string{"f", "e", "d", "c", "b"} {
		w.Create(t, testkit.Config(name, w.URL, ""))
	}
	waitMessage(" to one of: acme, b, c, d, e and 2 more")
	w.Remove(t, testkit.Config("b", "", ""), testkit.Config("prod", "", ""))
	waitMessage(" to one of: acme, c, d, e, f")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = "acme" })
	w.WaitReady(t, "photos")
}
