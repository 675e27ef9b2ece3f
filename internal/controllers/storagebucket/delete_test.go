package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

func TestBehaviour03TheBucketGoesBeforeTheFinalizer(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	api := &testkit.Recorder{Before: func(r testkit.Request) {
		if r.Method == http.MethodPatch && len(w.Provider.Buckets()) > 0 && wantsNoFinalizer(r.Body) {
			t.Errorf("the finalizer was taken off while the provider had %v", w.Provider.Buckets())
		}
	}}
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapAPI: api.Wrap})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
	if writes := api.WritesTo("/storagebuckets/photos", "/storagebuckets/photos/status"); len(writes) != 4 {
		t.Errorf("the life of the object took the writes %v: want the finalizer, one status, one that tells of the deletion, and the finalizer again", writes)
	}
}

func TestBehaviour03ABucketThatIsAlreadyGoneIsNoObstacle(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	bucket := w.WaitReady(t, "photos")
	if _, err := w.Provider.Vanish(bucket.Status.ID); err != nil {
		t.Fatal(err)
	}
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
}

func TestBehaviour03WhatWasNeverCreatedIsDeletedWithoutAProviderCall(t *testing.T) {
	t.Parallel()
	unreachable := "http://127.0.0.1:1"
	for name, tc := range map[string]struct {
		options mockprovider.Options
		prepare func(t *testing.T, w *testkit.World)
		bucket  func(*storagev1.StorageBucket)
		reason  string
	}{
		"no provider": {
			prepare: func(*testing.T, *testkit.World) {},
			reason:  storagev1.ReasonProviderNotFound,
		},
		"a spec that the provider refuses": {
			prepare: func(t *testing.T, w *testkit.World) { w.Create(t, testkit.Config("default", w.URL, "")) },
			bucket:  func(b *storagev1.StorageBucket) { b.Spec.Region = "atlantis-1" },
			reason:  "SpecRefused",
		},
		"credentials that the provider refuses": {
			options: mockprovider.Options{APIKeys: map[string]string{"right": "acme"}},
			prepare: func(t *testing.T, w *testkit.World) {
				w.Create(t, testkit.Secret("credentials", "wrong"), testkit.Config("default", w.URL, "credentials"))
			},
			reason: "Unauthorized",
		},
		"a provider that is not there": {
			prepare: func(t *testing.T, w *testkit.World) { w.Create(t, testkit.Config("default", unreachable, "")) },
			reason:  "ProviderUnavailable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, tc.options)
			provider := &testkit.Recorder{}
			operator := w.Start(t, testkit.Settings{WrapProvider: provider.Wrap})
			tc.prepare(t, w)
			if tc.bucket == nil {
				tc.bucket = func(*storagev1.StorageBucket) {}
			}
			w.Create(t, testkit.Bucket("photos", tc.bucket))
			w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, tc.reason)

			// A new operator knows only what is written down.
			operator.Stop(t)
			w.Remove(t, testkit.Bucket("photos"))
			fresh := &testkit.Recorder{}
			w.Start(t, testkit.Settings{WrapProvider: fresh.Wrap})
			w.WaitGone(t, testkit.Bucket("photos"))
			if calls := fresh.Requests(); len(calls) != 0 {
				t.Errorf("deleting made the provider calls %v, want none", calls)
			}
		})
	}
}

func TestBehaviour03RetainLetsGoOfATerminatingBucketWithoutCredentials(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"key": "acme"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("credentials", "key"), testkit.Config("default", w.URL, "credentials"), testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	w.Provider.SetAPIKeys(map[string]string{"another": "acme"})
	w.Remove(t, testkit.Bucket("photos"))
	bucket := w.WaitCondition(t, "photos", "DeletionBlocked", metav1.ConditionTrue, "Unauthorized")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "DeletionBlocked"), "spec.deletionPolicy", "Retain")
	if bucket.Status.Phase != storagev1.BucketPhaseDeleting {
		t.Errorf("the phase is %s", bucket.Status.Phase)
	}
	waitEvent(t, w, "photos", corev1.EventTypeWarning, "Unauthorized")

	calls := len(w.Provider.Calls())
	testkit.Modify(t, w, "photos", testkit.Bucket(""), func(b *storagev1.StorageBucket) {
		b.Spec.DeletionPolicy = storagev1.DeletionPolicyRetain
	})
	w.WaitGone(t, testkit.Bucket("photos"))
	if left := w.Provider.Buckets(); len(left) != 1 {
		t.Errorf("the provider has %v, want the retained bucket (after %d calls)", left, calls)
	}
}

func TestADeletionGoesOnWhenTheProviderIsBack(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	down := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Delete, Fault: mockprovider.Fault{Status: 500}})
	w.Remove(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", "DeletionBlocked", metav1.ConditionTrue, "ProviderUnavailable")
	down.Remove()
	w.WaitGone(t, testkit.Bucket("photos"))
}

func TestDeletionWaitsUntilTheProviderHasDeletedTheBucket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	// It says 204 and has not done it.
	lazy := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Delete, Fault: mockprovider.Fault{Status: 204, Empty: true}})
	w.Remove(t, testkit.Bucket("photos"))
	testkit.Eventually(t, func(context.Context) string {
		if lazy.Hits() < 3 {
			return fmt.Sprintf("%d deletes", lazy.Hits())
		}
		return ""
	})
	if w.Bucket(t, "photos") == nil {
		t.Fatal("the object went while the provider still had its bucket")
	}
	lazy.Remove()
	w.WaitGone(t, testkit.Bucket("photos"))
}

func TestABucketThatIsNotEmptyBlocksItsDeletionAndSaysSo(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Delete, Fault: mockprovider.Fault{Status: 409, Body: `{"error":"the bucket is not empty"}`}})
	w.Remove(t, testkit.Bucket("photos"))
	bucket := w.WaitCondition(t, "photos", "DeletionBlocked", metav1.ConditionTrue, "")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "DeletionBlocked"), "not empty", "Retain")
}

func TestBehaviour04AConfigurationAndItsSecretStayUntilTheLastBucketIsGone(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"key": "acme"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("credentials", "key"), testkit.Config("acme", w.URL, "credentials"))
	w.Create(t, testkit.Bucket("photos", testkit.ServedBy("acme")), testkit.Bucket("music", testkit.ServedBy("acme")))
	w.WaitReady(t, "photos")
	w.WaitReady(t, "music")

	w.Remove(t, testkit.Config("acme", "", ""), testkit.Secret("credentials", ""))
	config := w.WaitConfigCondition(t, "acme", "DeletionBlocked", metav1.ConditionTrue, storagev1.ReasonInUse)
	wantText(t, "the message", messageOf(config.Status.Conditions, "DeletionBlocked"), "music", "photos")

	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	if w.Config(t, "acme") == nil {
		t.Fatal("the configuration went while a bucket used it")
	}
	w.Remove(t, testkit.Bucket("music"))
	w.WaitGone(t, testkit.Bucket("music"))
	w.WaitGone(t, testkit.Config("acme", "", ""))
	w.WaitGone(t, testkit.Secret("credentials", ""))
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

func TestBehaviour04ASecretInUseSaysWhoKeepsIt(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"key": "acme"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("credentials", "key"), testkit.Config("acme", w.URL, "credentials"), testkit.Bucket("photos", testkit.ServedBy("acme")))
	w.WaitReady(t, "photos")
	w.Remove(t, testkit.Secret("credentials", ""))
	config := w.WaitConfigCondition(t, "acme", storagev1.ConditionSecretKept, metav1.ConditionTrue, storagev1.ReasonInUse)
	wantText(t, "the message", messageOf(config.Status.Conditions, storagev1.ConditionSecretKept), "credentials", "photos", "goes with it", "spec.secretRef.name")
	waitEvent(t, w, "acme", corev1.EventTypeWarning, storagev1.ReasonInUse, "SecretKept: Secret credentials", "photos", "goes with it", "spec.secretRef.name")

	w.Remove(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Bucket("photos"))
	w.WaitGone(t, testkit.Secret("credentials", ""))
	config = w.WaitConfigCondition(t, "acme", "Ready", metav1.ConditionFalse, storagev1.ReasonSecretNotFound)
	if c := meta.FindStatusCondition(config.Status.Conditions, storagev1.ConditionSecretKept); c != nil {
		t.Errorf("the condition %s is still there: %+v", c.Type, c)
	}
}

func TestBehaviour04ASecretThatIsNoLongerNamedIsReleased(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("old", "key"), testkit.Secret("new", "key"), testkit.Config("acme", w.URL, "old"))
	w.WaitConfigCondition(t, "acme", "Ready", metav1.ConditionTrue, "")
	testkit.Modify(t, w, "acme", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.SecretRef.Name = "new" })
	testkit.Eventually(t, func(ctx context.Context) string {
		secret := &corev1.Secret{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "old"}, secret); err != nil {
			return err.Error()
		}
		if len(secret.Finalizers) > 0 {
			return fmt.Sprintf("the old Secret has the finalizers %v", secret.Finalizers)
		}
		return ""
	})
}

func TestBehaviour04DeletingANamespaceEndsCleanly(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{"key": "acme"}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Secret("credentials", "key"), testkit.Config("default", w.URL, "credentials"))
	for i := range 5 {
		w.Create(t, testkit.Bucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range 5 {
		w.WaitReady(t, fmt.Sprintf("bucket-%d", i))
	}
	if err := w.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func(ctx context.Context) string {
		namespace := &corev1.Namespace{}
		err := w.Client.Get(ctx, client.ObjectKey{Name: w.Namespace}, namespace)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("the namespace is still there: %+v, %v", namespace.Status, err)
	})
	if left := w.Provider.Buckets(); len(left) != 0 {
		t.Errorf("the provider still has %v", left)
	}
}

// wantsNoFinalizer tells a patch that takes the finalizer off.
func wantsNoFinalizer(body string) bool {
	return len(body) > 0 && contains(body, `"finalizers":null`)
}
