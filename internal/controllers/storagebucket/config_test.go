package storagebucket_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// lookedAt tells how often the provider was asked for each bucket, by the
// bucket's object.
func lookedAt(t *testing.T, w *testkit.World) map[string]int {
	t.Helper()
	buckets := &storagev1.StorageBucketList{}
	if err := w.Client.List(t.Context(), buckets); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, b := range buckets.Items {
		if b.Namespace == w.Namespace {
			names[b.Status.ID] = b.Name
		}
	}
	calls := map[string]int{}
	for _, c := range w.Provider.Calls() {
		calls[names[c.ID]]++
	}
	return calls
}

func TestBehaviour05AChangeReachesEveryBucketThatUsesItAndNoOther(t *testing.T) {
	t.Parallel()
	change := map[string]func(t *testing.T, w *testkit.World){
		"of the configuration": func(t *testing.T, w *testkit.World) {
			testkit.Modify(t, w, "acme", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit.QPS = 900 })
		},
		"of the Secret": func(t *testing.T, w *testkit.World) {
			testkit.Modify(t, w, "acme-credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte("second") })
		},
		"of the Secret while the operator is down": nil,
	}
	for name, act := range change {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"first": "acme", "second": "acme", "other": "other"}})
			operator := w.Start(t, testkit.Settings{})
			w.Create(t, testkit.Secret("acme-credentials", "first"), testkit.Config("acme", w.URL, "acme-credentials"))
			w.Create(t, testkit.Secret("other-credentials", "other"), testkit.Config("other", w.URL, "other-credentials"))
			var using []string
			for i := range 6 {
				using = append(using, fmt.Sprintf("using-%d", i))
				w.Create(t, testkit.Bucket(using[i], testkit.ServedBy("acme")), testkit.Bucket(fmt.Sprintf("not-%d", i), testkit.ServedBy("other")))
			}
			for i := range 6 {
				w.WaitReady(t, using[i])
				w.WaitReady(t, fmt.Sprintf("not-%d", i))
			}
			if act == nil {
				operator.Stop(t)
				change["of the Secret"](t, w)
			}
			w.Provider.ResetCalls()
			if act == nil {
				w.Start(t, testkit.Settings{})
			} else {
				act(t, w)
			}
			testkit.Eventually(t, func(context.Context) string {
				calls := lookedAt(t, w)
				for _, name := range using {
					if calls[name] == 0 {
						return fmt.Sprintf("the provider was asked %v", calls)
					}
				}
				return ""
			})
			for _, name := range using {
				w.WaitReady(t, name)
			}
			for name, n := range lookedAt(t, w) {
				if name[:3] == "not" || n != 1 {
					t.Errorf("the provider was asked %d times for %s", n, name)
				}
			}
		})
	}
}

func TestBehaviour05ARevokedKeyIsSeenAndItsSuccessorTakenAtOnce(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"first": "acme"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("credentials", "first"), testkit.Config("default", w.URL, "credentials"), testkit.Bucket("photos"))
	w.WaitReady(t, "photos")

	setKey := func(key string) {
		testkit.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte(key) })
	}
	setKey("mistyped")
	bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, "Unauthorized")
	if contains(fmt.Sprintf("%+v", bucket), "mistyped") {
		t.Error("the key is in the object")
	}
	setKey("first")
	w.WaitReady(t, "photos")
	if len(w.Provider.Buckets()) != 1 {
		t.Errorf("the provider has %v", w.Provider.Buckets())
	}
}

func TestADefaultConfigurationThatComesLaterDoesNotTakeOverBuckets(t *testing.T) {
	t.Parallel()
	w, another := testkit.NewWorld(t, mockprovider.Options{}), testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	before := w.WaitReady(t, "photos")
	w.Create(t, testkit.Config("default", another.URL, ""), testkit.Bucket("music"))
	w.WaitReady(t, "music")
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	if after := w.WaitReady(t, "photos"); after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 || len(another.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the providers have %v and %v", before.Status.ID, after.Status.ID, w.Provider.Buckets(), another.Provider.Buckets())
	}
}
