package engine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

func TestChangedLetsThroughWhatMattersAndNoEchoOfOwnWrites(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	held := func() *storagev1.StorageBucket {
		return &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{
			UID: "a", Generation: 1, Finalizers: []string{"f"}, Annotations: map[string]string{"m": "1"},
		}}
	}
	bare := func() *storagev1.StorageBucket {
		return &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{UID: "a", Generation: 1}}
	}
	for name, tc := range map[string]struct {
		before *storagev1.StorageBucket
		change func(*storagev1.StorageBucket)
		want   bool
	}{
		"nothing":                 {held(), func(*storagev1.StorageBucket) {}, false},
		"spec":                    {held(), func(b *storagev1.StorageBucket) { b.Generation++ }, true},
		"deletion":                {held(), func(b *storagev1.StorageBucket) { b.DeletionTimestamp = &now }, true},
		"recreation":              {held(), func(b *storagev1.StorageBucket) { b.UID = "b" }, true},
		"status":                  {held(), func(b *storagev1.StorageBucket) { b.Status.ID = "x" }, false},
		"labels":                  {held(), func(b *storagev1.StorageBucket) { b.Labels = map[string]string{"a": "b"} }, false},
		"others' annotations":     {held(), func(b *storagev1.StorageBucket) { b.Annotations["x"] = "y" }, false},
		"finalizer put on":        {bare(), func(b *storagev1.StorageBucket) { b.Finalizers = []string{"f"} }, false},
		"annotation put on":       {bare(), func(b *storagev1.StorageBucket) { b.Annotations = map[string]string{"m": "1"} }, false},
		"finalizer taken off":     {held(), func(b *storagev1.StorageBucket) { b.Finalizers = nil }, true},
		"annotation taken off":    {held(), func(b *storagev1.StorageBucket) { b.Annotations = nil }, true},
		"annotation altered":      {held(), func(b *storagev1.StorageBucket) { b.Annotations["m"] = "2" }, true},
		"trigger set":             {held(), func(b *storagev1.StorageBucket) { b.Annotations["t"] = "1" }, true},
		"others' finalizer added": {held(), func(b *storagev1.StorageBucket) { b.Finalizers = append(b.Finalizers, "g") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := tc.before.DeepCopy()
			tc.change(after)
			if got := Changed(Traits{Finalizer: "f", Annotations: []string{"m"}, Triggers: []string{"t"}}).Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: after}); got != tc.want {
				t.Errorf("let through: %t, want %t", got, tc.want)
			}
		})
	}
}
