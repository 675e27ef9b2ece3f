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
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

func TestBehaviour01FinalizerAndKeyAreOnTheObjectInOneWriteBeforeTheFirstCreateCall(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	api := &recorder{}
	var atCreate atomic.Pointer[storagev1.StorageBucket]
	var writesBefore atomic.Int32
	provider := &recorder{before: func(r request) {
		if r.method == http.MethodPost && atCreate.Load() == nil {
			writesBefore.Store(int32(len(api.writesOf("/storagebuckets/photos", "/storagebuckets/photos/status"))))
			atCreate.Store(w.Bucket(t, "photos"))
		}
	}}
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, WrapAPI: api.wrap, WrapProvider: provider.wrap})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")

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
	w := operatortest.NewWorld(t, mockprovider.Options{})
	api, provider := &recorder{}, &recorder{}
	// A host name, as an ExternalName Service takes one write and an IP two.
	endpoint := strings.Replace(w.URL, "127.0.0.1", "localhost", 1)
	w.Start(t, operatortest.Settings{DefaultEndpoint: endpoint, WrapAPI: api.wrap, WrapProvider: provider.wrap})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")

	got := map[string]int{}
	for _, r := range api.requests() {
		if r.writes() && !r.isEvent() {
			got[r.method+" "+r.path[strings.LastIndex(r.path, w.Namespace)+len(w.Namespace):]]++
		}
	}
	want := map[string]int{
		"PATCH /storagebuckets/photos": 1, "POST /secrets": 1, "POST /services": 1, "PATCH /storagebuckets/photos/status": 1,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("creating a bucket took the writes %v, want %v", got, want)
	}
	if calls := provider.requests(); len(calls) != 1 {
		t.Errorf("creating a bucket took the provider calls %v, want one", calls)
	}
}

func TestBehaviour02ACrashBetweenCreateCallAndStatusWriteLeavesOneBucket(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	var first *operatortest.Operator
	created := make(chan struct{})
	// The answer is lost and the process with it.
	dying := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
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
	first = w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, WrapProvider: dying})
	w.Create(t, newBucket("photos"))
	<-created
	first.Stop(t)
	if id := w.Bucket(t, "photos").Status.ID; id != "" {
		t.Fatalf("the crash came too late: the status has the id %s", id)
	}

	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	bucket := waitReady(t, w, "photos")
	buckets := w.Provider.Buckets()
	if len(buckets) != 1 || buckets[0].ID != bucket.Status.ID {
		t.Errorf("the provider has %v, the status says %s: want one and the same bucket", buckets, bucket.Status.ID)
	}
}

func TestBehaviour02ADeletionDuringTheOutageLeaksNoBucket(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	var first *operatortest.Operator
	created := make(chan struct{})
	first = w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, WrapProvider: func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				_ = response.Body.Close()
			}
			first.Kill()
			close(created)
			return nil, context.Canceled
		})
	}})
	w.Create(t, newBucket("photos"))
	<-created
	first.Stop(t)
	remove(t, w, newBucket("photos"))

	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	waitGone(t, w, newBucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestAMinimalProviderIsEnough(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{Minimal: true, ActivateAfter: 50 * time.Millisecond})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	encrypted := true
	w.Create(t, newBucket("photos", func(b *storagev1.StorageBucket) { b.Spec.Encrypted = &encrypted }))
	waitReady(t, w, "photos")
	waitCondition(t, w, "photos", storagev1.ConditionSizeApplied, metav1.ConditionUnknown, storagev1.ReasonNotReported)
	waitCondition(t, w, "photos", storagev1.ConditionEncryptionApplied, metav1.ConditionUnknown, storagev1.ReasonNotReported)

	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	waitCondition(t, w, "photos", storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonNotSupported)
	bucket := waitReady(t, w, "photos")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "it has 100 GB, spec.sizeGB 200 is not applied: see SizeApplied")

	remove(t, w, newBucket("photos"))
	waitGone(t, w, newBucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestAResizeReachesTheProvider(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	if bucket := waitReady(t, w, "photos"); bucket.Status.SizeGB != 200 || w.Provider.Buckets()[0].SizeGB != 200 {
		t.Errorf("status has %d GB, the provider %d, want 200", bucket.Status.SizeGB, w.Provider.Buckets()[0].SizeGB)
	}
}

func TestARefusedShrinkIsReportedAndUndoneByGoingBack(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 50 })
	bucket := waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonResizeRefused)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "spec.sizeGB", "50", "100")
	if bucket.Status.Phase != storagev1.BucketPhaseActive {
		t.Errorf("the phase is %s: the bucket still serves", bucket.Status.Phase)
	}
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 100 })
	waitReady(t, w, "photos")
}

func TestABackupRestoredIntoANewClusterFindsItsBucketAgain(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos"))
	before := waitReady(t, w, "photos")
	operator.Stop(t)

	// What a backup keeps: metadata and spec. The old object goes without its operator.
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Finalizers = nil })
	remove(t, w, newBucket("photos"))
	waitGone(t, w, newBucket("photos"))
	w.Create(t, newBucket("photos", func(b *storagev1.StorageBucket) {
		b.Annotations, b.Finalizers = before.Annotations, before.Finalizers
	}))

	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	after := waitReady(t, w, "photos")
	if after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the provider has %v", before.Status.ID, after.Status.ID, w.Provider.Buckets())
	}
}

func TestAKeyCopiedFromAnotherObjectIsRefused(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("victim"))
	victim := waitReady(t, w, "victim")
	w.Create(t, newBucket("thief", func(b *storagev1.StorageBucket) {
		b.Annotations = map[string]string{storagev1.IdempotencyKeyAnnotation: victim.Annotations[storagev1.IdempotencyKeyAnnotation]}
	}))
	waitCondition(t, w, "thief", "Ready", metav1.ConditionFalse, storagev1.ReasonKeyInvalid)
	remove(t, w, newBucket("thief"))
	waitGone(t, w, newBucket("thief"))
	if buckets := w.Provider.Buckets(); len(buckets) != 1 || buckets[0].ID != victim.Status.ID {
		t.Errorf("the provider has %v, want the victim's bucket alone", buckets)
	}
}

func TestProviderRefMayBeCorrectedUntilTheBucketExists(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{})
	w.Create(t, newConfig("good", w.URL, ""), newConfig("bad", "http://127.0.0.1:1", ""))
	w.Create(t, newBucket("photos", servedBy("bad")))
	waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = "good" })
	waitReady(t, w, "photos")

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
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) {
		b.Finalizers, b.Annotations = nil, nil
	})
	operatortest.Eventually(t, func(context.Context) string {
		b := w.Bucket(t, "photos")
		if !controllerutil.ContainsFinalizer(b, storagev1.BucketFinalizer) || b.Annotations[storagev1.IdempotencyKeyAnnotation] == "" {
			return fmt.Sprintf("finalizers %v, annotations %v", b.Finalizers, b.Annotations)
		}
		return ""
	})
}

func TestABucketOfNoProviderSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"key": "acme"}})
	w.Start(t, operatortest.Settings{})
	w.Create(t, newBucket("photos"), newBucket("music", servedBy("acme")))
	bucket := waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonProviderNotFound)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "spec.providerRef", "default")
	bucket = waitCondition(t, w, "music", "Ready", metav1.ConditionFalse, storagev1.ReasonProviderNotFound)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "BucketProviderConfig acme", "create it, or correct spec.providerRef")

	w.Create(t, newConfig("default", w.URL, "credentials"), newConfig("acme", w.URL, "credentials"))
	bucket = waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, storagev1.ReasonSecretNotFound)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "Secret credentials", "spec.secretRef.name of BucketProviderConfig default")

	w.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"token": "key"}})
	bucket = waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, "SecretInvalid")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "Secret credentials (of BucketProviderConfig default) has no key apiKey: put")
	config := waitConfigCondition(t, w, "acme", "Ready", metav1.ConditionFalse, "SecretInvalid")
	wantText(t, "the configuration's message", messageOf(config.Status.Conditions, "Ready"), "Secret credentials has no key apiKey: put")

	operatortest.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data = map[string][]byte{"apiKey": []byte("wrong")} })
	bucket = waitCondition(t, w, "music", "Ready", metav1.ConditionFalse, "Unauthorized")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "correct the key apiKey of Secret credentials (of BucketProviderConfig acme)")

	operatortest.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data = map[string][]byte{"apiKey": []byte("key")} })
	waitReady(t, w, "photos")
	waitReady(t, w, "music")
}

func TestABucketOfAProviderThatIsNotThereSaysWhoseEndpointToCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings operatortest.Settings
		config   string
		want     string
	}{
		"a configuration's":      {config: "dead", want: "spec.endpoint of BucketProviderConfig dead"},
		"the operator's default": {settings: operatortest.Settings{DefaultEndpoint: "http://127.0.0.1:1"}, want: "the operator's --default-provider-endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := operatortest.NewWorld(t, mockprovider.Options{})
			w.Start(t, tc.settings)
			w.Create(t, newConfig("dead", "http://127.0.0.1:1", ""), newBucket("photos", servedBy(tc.config)))
			bucket := waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, "ProviderUnavailable")
			wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "connecting to 127.0.0.1:1 was refused: check", tc.want)
		})
	}
}

func TestABucketThatNothingServesSaysWhichConfigurationsThereAre(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{})
	waitMessage := func(end string) {
		t.Helper()
		waitFor(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) string {
			if message := messageOf(b.Status.Conditions, "Ready"); !strings.HasSuffix(message, end) {
				return fmt.Sprintf("the message is %q, want it to end with %q", message, end)
			}
			return ""
		})
	}
	w.Create(t, newBucket("photos"))
	waitMessage(": create a BucketProviderConfig called default, which the administrator of the namespace may")
	for _, name := range []string{"prod", "acme"} {
		w.Create(t, newConfig(name, w.URL, ""))
	}
	waitMessage(": create a BucketProviderConfig called default, or set spec.providerRef to one of: acme, prod")
	for _, name := range []string{"f", "e", "d", "c", "b"} {
		w.Create(t, newConfig(name, w.URL, ""))
	}
	waitMessage(" to one of: acme, b, c, d, e and 2 more")
	remove(t, w, newConfig("b", "", ""), newConfig("prod", "", ""))
	waitMessage(" to one of: acme, c, d, e, f")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = "acme" })
	waitReady(t, w, "photos")
}
