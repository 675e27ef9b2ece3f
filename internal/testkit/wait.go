package testkit

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// WaitReady waits until a bucket is ready for its present spec.
func (w *World) WaitReady(t testing.TB, name string) *storagev1.StorageBucket {
	t.Helper()
	return w.WaitCondition(t, name, "Ready", metav1.ConditionTrue, "")
}

// WaitCondition waits until a bucket's condition, for its present spec, has
// the status and, unless that is empty, the reason.
func (w *World) WaitCondition(t testing.TB, name, conditionType string, status metav1.ConditionStatus, reason string) *storagev1.StorageBucket {
	t.Helper()
	bucket := &storagev1.StorageBucket{}
	return WaitFor(t, w, name, bucket, func(b *storagev1.StorageBucket) string {
		c := meta.FindStatusCondition(b.Status.Conditions, conditionType)
		if c != nil && c.ObservedGeneration != b.Generation {
			return fmt.Sprintf("%s of %s is of an earlier generation than %d: %+v", conditionType, name, b.Generation, b.Status)
		}
		return unlike(c, name, conditionType, status, reason)
	})
}

// WaitConfigCondition waits until a configuration's condition has the status
// and, unless that is empty, the reason.
func (w *World) WaitConfigCondition(t testing.TB, name, conditionType string, status metav1.ConditionStatus, reason string) *storagev1.BucketProviderConfig {
	t.Helper()
	config := &storagev1.BucketProviderConfig{}
	return WaitFor(t, w, name, config, func(c *storagev1.BucketProviderConfig) string {
		return unlike(meta.FindStatusCondition(c.Status.Conditions, conditionType), name, conditionType, status, reason)
	})
}

func unlike(c *metav1.Condition, name, conditionType string, status metav1.ConditionStatus, reason string) string {
	if c == nil || c.Status != status || reason != "" && c.Reason != reason {
		return fmt.Sprintf("%s of %s is not %s/%s: %+v", conditionType, name, status, reason, c)
	}
	return ""
}

// WaitFor waits until an object is as check wants it.
func WaitFor[T client.Object](t testing.TB, w *World, name string, object T, check func(T) string) T {
	t.Helper()
	blank := object.DeepCopyObject() // reading into an object that was read before would leave fields that are gone
	Eventually(t, func(ctx context.Context) string {
		object = blank.DeepCopyObject().(T)
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: name}, object); err != nil {
			return err.Error()
		}
		return check(object)
	})
	return object
}

// WaitGone waits until an object is no more.
func (w *World) WaitGone(t testing.TB, object client.Object) {
	t.Helper()
	Eventually(t, func(ctx context.Context) string {
		key := client.ObjectKey{Namespace: w.Namespace, Name: object.GetName()}
		err := w.Client.Get(ctx, key, object)
		if client.IgnoreNotFound(err) != nil {
			return err.Error()
		}
		if err == nil {
			return fmt.Sprintf("%T %s is still there: %+v", object, key.Name, object)
		}
		return ""
	})
}

// Remove asks for objects to be deleted, and does not wait until they are.
func (w *World) Remove(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(w.Namespace)
		if err := client.IgnoreNotFound(w.Client.Delete(t.Context(), object)); err != nil {
			t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
		}
	}
}
