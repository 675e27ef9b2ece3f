package storagebucket_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

// lookedAt tells how often the provider was asked for each bucket, by the
// bucket's object.
func lookedAt(t *testing.T, w *operatortest.World) map[string]int {
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
	change := map[string]func(t *testing.T, w *operatortest.World){
		"of the configuration": func(t *testing.T, w *operatortest.World) {
			operatortest.Modify(t, w, "acme", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit.QPS = 900 })
		},
		"of the Secret": func(t *testing.T, w *operatortest.World) {
			operatortest.Modify(t, w, "acme-credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte("second") })
		},
		"of the Secret while the operator is down": nil,
	}
	for name, act := range change {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := operatortest.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"first": "acme", "second": "acme", "other": "other"}})
			operator := w.Start(t, operatortest.Settings{})
			w.Create(t, newSecret("acme-credentials", "first"), newConfig("acme", w.URL, "acme-credentials"))
			w.Create(t, newSecret("other-credentials", "other"), newConfig("other", w.URL, "other-credentials"))
			var using []string
			for i := range 6 {
				using = append(using, fmt.Sprintf("using-%d", i))
				w.Create(t, newBucket(using[i], servedBy("acme")), newBucket(fmt.Sprintf("not-%d", i), servedBy("other")))
			}
			for i := range 6 {
				waitReady(t, w, using[i])
				waitReady(t, w, fmt.Sprintf("not-%d", i))
			}
			if act == nil {
				operator.Stop(t)
				change["of the Secret"](t, w)
			}
			w.Provider.ResetCalls()
			if act == nil {
				w.Start(t, operatortest.Settings{})
			} else {
				act(t, w)
			}
			operatortest.Eventually(t, func(context.Context) string {
				calls := lookedAt(t, w)
				for _, name := range using {
					if calls[name] == 0 {
						return fmt.Sprintf("the provider was asked %v", calls)
					}
				}
				return ""
			})
			for _, name := range using {
				waitReady(t, w, name)
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
	w := operatortest.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"first": "acme"}})
	w.Start(t, operatortest.Settings{})
	w.Create(t, newSecret("credentials", "first"), newConfig("default", w.URL, "credentials"), newBucket("photos"))
	waitReady(t, w, "photos")

	setKey := func(key string) {
		operatortest.Modify(t, w, "credentials", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte(key) })
	}
	setKey("mistyped")
	bucket := waitCondition(t, w, "photos", "Ready", metav1.ConditionFalse, "Unauthorized")
	if contains(fmt.Sprintf("%+v", bucket), "mistyped") {
		t.Error("the key is in the object")
	}
	setKey("first")
	waitReady(t, w, "photos")
	if len(w.Provider.Buckets()) != 1 {
		t.Errorf("the provider has %v", w.Provider.Buckets())
	}
}

func TestADefaultConfigurationThatComesLaterDoesNotTakeOverBuckets(t *testing.T) {
	t.Parallel()
	w, another := operatortest.NewWorld(t, mockprovider.Options{}), operatortest.NewWorld(t, mockprovider.Options{})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos"))
	before := waitReady(t, w, "photos")
	w.Create(t, newConfig("default", another.URL, ""), newBucket("music"))
	waitReady(t, w, "music")
	operatortest.Modify(t, w, "photos", newBucket(""), func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	if after := waitReady(t, w, "photos"); after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 || len(another.Provider.Buckets()) != 1 {
		t.Errorf("bucket %s became %s; the providers have %v and %v", before.Status.ID, after.Status.ID, w.Provider.Buckets(), another.Provider.Buckets())
	}
}
