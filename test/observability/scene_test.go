package observability_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// scene is an operator that leads, with objects in every state that its
// metrics tell apart.
type scene struct {
	*testkit.World
	*operator
	token string // of somebody who may get the metrics
}

func newScene(t *testing.T) *scene {
	t.Helper()
	w := testkit.NewWorld(t, mockprovider.Options{})
	s := &scene{World: w, operator: startOperator(t, w.Namespace), token: metricsReader(t, w.Namespace, "prometheus")}

	slow, err := mockprovider.New(mockprovider.Options{ActivateAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w.Create(t, testkit.Config("default", w.URL, ""), testkit.Config("slow", serve(t, slow), ""), testkit.Config("keyless", w.URL, "missing"))
	w.Create(t,
		testkit.Bucket("photos"), testkit.Bucket("blocked"), testkit.Bucket("gone"),
		testkit.Bucket("refused", func(b *storagev1.StorageBucket) { b.Spec.Region = "atlantis-1" }),
		testkit.Bucket("in-the-making", testkit.ServedBy("slow")))
	w.WaitCondition(t, "photos", "Ready", metav1.ConditionTrue, "Available")
	w.WaitCondition(t, "gone", "Ready", metav1.ConditionTrue, "Available")
	w.WaitCondition(t, "refused", "Ready", metav1.ConditionFalse, "SpecRefused")
	w.WaitCondition(t, "in-the-making", "Ready", metav1.ConditionUnknown, "Provisioning")

	blocked := w.WaitCondition(t, "blocked", "Ready", metav1.ConditionTrue, "Available")
	w.Provider.Faults().Add(mockprovider.Rule{
		Operation: mockprovider.Delete, Path: blocked.Status.ID, Fault: mockprovider.Fault{Status: http.StatusInternalServerError},
	})
	w.Remove(t, blocked, w.Bucket(t, "gone"))
	w.WaitCondition(t, "blocked", "DeletionBlocked", metav1.ConditionTrue, "ProviderUnavailable")
	testkit.Eventually(t, func(context.Context) string {
		if w.Bucket(t, "gone") != nil {
			return "a bucket is still being deleted"
		}
		return ""
	})
	return s
}
