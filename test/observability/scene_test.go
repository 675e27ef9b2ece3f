package observability_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

// scene is an operator that leads, with objects in every state that its
// metrics tell apart.
type scene struct {
	*operatortest.World
	*operator
	token string // of somebody who may get the metrics
}

func newScene(t *testing.T) *scene {
	t.Helper()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	s := &scene{World: w, operator: startOperator(t, w.Namespace), token: metricsReader(t, w.Namespace, "prometheus")}

	slow, err := mockprovider.New(mockprovider.Options{ActivateAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w.Create(t, newConfig("default", w.URL), newConfig("slow", serve(t, slow)), newConfig("keyless", w.URL, withSecret("missing")))
	w.Create(t,
		newBucket("photos"), newBucket("blocked"), newBucket("gone"),
		newBucket("refused", func(b *storagev1.StorageBucket) { b.Spec.Region = "atlantis-1" }),
		newBucket("in-the-making", servedBy("slow")))
	waitReady(t, w, "photos", metav1.ConditionTrue, "Available")
	waitReady(t, w, "gone", metav1.ConditionTrue, "Available")
	waitReady(t, w, "refused", metav1.ConditionFalse, "SpecRefused")
	waitReady(t, w, "in-the-making", metav1.ConditionUnknown, "Provisioning")

	blocked := waitReady(t, w, "blocked", metav1.ConditionTrue, "Available")
	w.Provider.Faults().Add(mockprovider.Rule{
		Operation: mockprovider.Delete, Path: blocked.Status.ID, Fault: mockprovider.Fault{Status: http.StatusInternalServerError},
	})
	remove(t, w, blocked, w.Bucket(t, "gone"))
	waitCondition(t, w, "blocked", "DeletionBlocked", metav1.ConditionTrue, "ProviderUnavailable")
	operatortest.Eventually(t, func(context.Context) string {
		if w.Bucket(t, "gone") != nil {
			return "a bucket is still being deleted"
		}
		return ""
	})
	return s
}

// waitReady waits until a bucket's condition Ready is so for its present spec.
func waitReady(t *testing.T, w *operatortest.World, name string, status metav1.ConditionStatus, reason string) *storagev1.StorageBucket {
	t.Helper()
	return waitCondition(t, w, name, "Ready", status, reason)
}

func waitCondition(t *testing.T, w *operatortest.World, name, conditionType string, status metav1.ConditionStatus, reason string) *storagev1.StorageBucket {
	t.Helper()
	var bucket *storagev1.StorageBucket
	operatortest.Eventually(t, func(context.Context) string {
		if bucket = w.Bucket(t, name); bucket == nil {
			return "there is no StorageBucket " + name
		}
		c := meta.FindStatusCondition(bucket.Status.Conditions, conditionType)
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != bucket.Generation {
			return fmt.Sprintf("%s of %s is not %s/%s: %+v", conditionType, name, status, reason, bucket.Status)
		}
		return ""
	})
	return bucket
}
