package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// atAddress has the operator call the mock provider whatever the endpoint says.
func atAddress(w *testkit.World) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(w.URL, "http://")
			return next.RoundTrip(r)
		})
	}
}

// childrenOf are the objects that a bucket at an IP address owns.
func childrenOf(bucket string) []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: bucket + "-access"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: bucket}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: bucket}},
	}
}

// asABackupKeeps is an object as a backup tool brings it back.
func asABackupKeeps[T client.Object](object T) T {
	object = object.DeepCopyObject().(T)
	object.SetOwnerReferences(nil)
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	object.SetGeneration(0)
	return object
}

func TestR3ARestoredBucketTakesItsChildrenBack(t *testing.T) {
	t.Parallel()
	for name, remade := range map[string]bool{"that were left orphaned": false, "that were restored too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{})
			settings := testkit.Settings{WrapProvider: atAddress(w)}
			operator := w.Start(t, settings)
			w.Create(t, testkit.Config("default", "http://192.0.2.7:8080", ""), testkit.Bucket("photos"))
			before := w.WaitReady(t, "photos")
			children := childrenOf("photos")
			for _, c := range children {
				testkit.WaitFor(t, w, c.GetName(), c, func(client.Object) string { return "" })
			}
			operator.Stop(t)

			// The cluster is lost: nobody deletes anything at the provider.
			testkit.Modify(t, w, "photos", &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) { b.Finalizers = nil })
			orphaning := metav1.DeletePropagationOrphan
			if err := w.Client.Delete(t.Context(), before.DeepCopy(), &client.DeleteOptions{PropagationPolicy: &orphaning}); err != nil {
				t.Fatal(err)
			}
			w.WaitGone(t, testkit.Bucket("photos"))
			for i, c := range children {
				c = testkit.WaitFor(t, w, c.GetName(), c, func(o client.Object) string {
					if len(o.GetOwnerReferences()) != 0 {
						return fmt.Sprintf("%T still has owners", o)
					}
					return ""
				})
				if remade {
					w.Remove(t, c.DeepCopyObject().(client.Object))
					c = asABackupKeeps(c)
					w.Create(t, c)
				}
				children[i] = c
			}
			restored := asABackupKeeps(before)
			restored.Status = storagev1.StorageBucketStatus{}
			w.Create(t, restored)
			w.Start(t, settings)

			after := w.WaitReady(t, "photos")
			if after.UID == before.UID || after.Status.ID != before.Status.ID || len(w.Provider.Buckets()) != 1 {
				t.Errorf("bucket %s became %s; the provider has %v", before.Status.ID, after.Status.ID, w.Provider.Buckets())
			}
			for _, c := range children {
				uid := c.GetUID()
				c = testkit.WaitFor(t, w, c.GetName(), c, func(o client.Object) string {
					if !metav1.IsControlledBy(o, after) {
						return fmt.Sprintf("%T has the owners %v", o, o.GetOwnerReferences())
					}
					return ""
				})
				if c.GetUID() != uid {
					t.Errorf("%T was made anew", c)
				}
			}
			for _, reason := range []string{storagev1.ReasonSecretConflict, storagev1.ReasonServiceConflict} {
				if told := eventsOf(t, w, "photos", reason); len(told) != 0 {
					t.Errorf("a conflict was told of: %v", told)
				}
			}
		})
	}
}

func TestR3AChildThatTellsOfAnotherBucketIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "photos-access", Labels: map[string]string{engine.Label: engine.LabelValue}},
		Data:       map[string][]byte{"id": []byte("of-another-bucket")},
	}
	w.Create(t, secret, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", storagev1.ConditionCredentialsReady, metav1.ConditionFalse, storagev1.ReasonSecretConflict)
	testkit.WaitFor(t, w, "photos-access", &corev1.Secret{}, func(s *corev1.Secret) string {
		if s.ResourceVersion != secret.ResourceVersion {
			return fmt.Sprintf("it was touched: %+v", s)
		}
		return ""
	})
}

func TestR4EachBucketTakesItsNameOnceTheObjectInTheWayIsGone(t *testing.T) {
	t.Parallel()
	const many = 30
	for name, tc := range map[string]struct {
		inTheWay          func(bucket string) client.Object
		condition, reason string
	}{
		"Services": {
			inTheWay: func(bucket string) client.Object {
				return &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: bucket}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "theirs.example"},
				}
			},
			condition: storagev1.ConditionEndpointReady, reason: storagev1.ReasonServiceConflict,
		},
		"Secrets": {
			inTheWay: func(bucket string) client.Object {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: bucket + "-access"}}
			},
			condition: storagev1.ConditionCredentialsReady, reason: storagev1.ReasonSecretConflict,
		},
		"EndpointSlices": {
			inTheWay: func(bucket string) client.Object {
				return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: bucket}, AddressType: discoveryv1.AddressTypeIPv4}
			},
			condition: storagev1.ConditionEndpointReady, reason: storagev1.ReasonServiceConflict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{})
			w.Start(t, testkit.Settings{WrapProvider: atAddress(w)})
			w.Create(t, testkit.Config("default", "http://192.0.2.7:8080", ""))
			bucket := func(i int) string { return fmt.Sprintf("bucket-%d", i) }
			for i := range many {
				object := tc.inTheWay(bucket(i))
				object.SetLabels(map[string]string{engine.Label: engine.LabelValue})
				w.Create(t, object, testkit.Bucket(bucket(i)))
			}
			for i := range many {
				w.WaitCondition(t, bucket(i), tc.condition, metav1.ConditionFalse, tc.reason)
			}
			for i := range many {
				w.Remove(t, tc.inTheWay(bucket(i)))
			}
			// There is no resync within this test's life.
			for i := range many {
				w.WaitReady(t, bucket(i))
			}
			for i := range many {
				after := w.Bucket(t, bucket(i))
				for _, c := range childrenOf(bucket(i)) {
					testkit.WaitFor(t, w, c.GetName(), c, func(o client.Object) string {
						if !metav1.IsControlledBy(o, after) {
							return fmt.Sprintf("%T is not the bucket's", o)
						}
						return ""
					})
				}
			}
		})
	}
}

func TestT5ABucketThatOthersHoldSaysThatItIsDeleted(t *testing.T) {
	t.Parallel()
	const others = "others.example/hold"
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos", func(b *storagev1.StorageBucket) { b.Finalizers = []string{others} }))
	w.WaitReady(t, "photos")
	rule := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Delete, Fault: mockprovider.Fault{Status: http.StatusServiceUnavailable}})
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", storagev1.ConditionBucketDeleted, metav1.ConditionFalse, "")
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, engine.ReasonDeleting)
	if len(w.Provider.Buckets()) != 1 {
		t.Errorf("the provider has %v", w.Provider.Buckets())
	}

	rule.Remove()
	w.WaitCondition(t, "photos", storagev1.ConditionBucketDeleted, metav1.ConditionTrue, storagev1.ReasonBucketDeleted)
	bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, engine.ReasonDeleting)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), others)
	if len(w.Provider.Buckets()) != 0 {
		t.Errorf("the provider has %v", w.Provider.Buckets())
	}
	testkit.WaitFor(t, w, "photos", &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) string {
		if len(b.Finalizers) != 1 || b.Finalizers[0] != others {
			return fmt.Sprintf("the finalizers are %v", b.Finalizers)
		}
		return ""
	})

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := w.Client.Patch(context.WithoutCancel(t.Context()), bucket, patch); err != nil {
		t.Fatal(err)
	}
	w.WaitGone(t, testkit.Bucket("photos"))
}
