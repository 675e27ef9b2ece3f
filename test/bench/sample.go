package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// newBucket is a bucket as all are made here.
func newBucket(namespace string, i int) *storagev1.StorageBucket {
	encrypted := true
	return &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("bucket-%06d", i)},
		Spec:       storagev1.StorageBucketSpec{Region: "us-east-1", SizeGB: 100, Encrypted: &encrypted},
	}
}

// sample is a bucket that the operator has made ready, and what it owns. The
// limit writes the like, so that it writes what the operator does, whatever
// that is: the same fields, and as much of them.
type sample struct {
	Bucket  storagev1.StorageBucket
	Secret  corev1.Secret
	Service corev1.Service
}

func (w *world) takeSample(ctx context.Context, bucket types.NamespacedName) error {
	var s sample
	for name, object := range map[string]client.Object{bucket.Name: &s.Bucket, bucket.Name + accessSuffix: &s.Secret} {
		if err := w.admin.Get(ctx, types.NamespacedName{Namespace: bucket.Namespace, Name: name}, object); err != nil {
			return fmt.Errorf("taking a sample: %w", err)
		}
	}
	if err := w.admin.Get(ctx, bucket, &s.Service); err != nil {
		return fmt.Errorf("taking a sample: %w", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	w.sample = w.file("sample.json")
	return os.WriteFile(w.sample, text, 0o600)
}

// accessSuffix makes the name of a bucket's Secret.
const accessSuffix = "-access"

// writer makes the writes of a sample for other buckets.
type writer struct {
	sample
	api    client.Client
	status json.RawMessage
}

func readSample(path string, api client.Client) (*writer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := &writer{api: api}
	if err := json.Unmarshal(text, &w.sample); err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	w.status, err = json.Marshal(w.Bucket.Status)
	return w, err
}

// same makes the writes of the operator, one after the other.
func (w *writer) same(ctx context.Context, bucket *storagev1.StorageBucket) error {
	if err := w.mark(ctx, bucket); err != nil {
		return err
	}
	if err := w.api.Create(ctx, w.secretOf(bucket)); err != nil {
		return err
	}
	if err := w.api.Create(ctx, w.serviceOf(bucket)); err != nil {
		return err
	}
	return w.report(ctx, bucket)
}

// best makes the fewest writes that are known to do, where an admission policy
// marks the bucket when it is created.
func (w *writer) best(ctx context.Context, bucket *storagev1.StorageBucket) error {
	failed := make(chan error, 1)
	go func() { failed <- w.api.Create(ctx, w.secretOf(bucket)) }()
	err := w.api.Create(ctx, w.serviceOf(bucket))
	if secretErr := <-failed; secretErr != nil {
		return secretErr
	}
	if err != nil {
		return err
	}
	return w.report(ctx, bucket)
}

// mark puts the finalizer and the annotations on the bucket.
func (w *writer) mark(ctx context.Context, bucket *storagev1.StorageBucket) error {
	annotations := map[string]string{}
	for key, value := range w.Bucket.Annotations {
		annotations[key] = strings.ReplaceAll(value, string(w.Bucket.UID), string(bucket.UID))
	}
	patch, err := mergePatch(map[string]any{"metadata": map[string]any{
		"resourceVersion": bucket.ResourceVersion, "finalizers": w.Bucket.Finalizers, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	return w.api.Patch(ctx, bucket, patch)
}

// report writes the bucket's status.
func (w *writer) report(ctx context.Context, bucket *storagev1.StorageBucket) error {
	patch, err := mergePatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": bucket.ResourceVersion}, "status": w.status,
	})
	if err != nil {
		return err
	}
	return w.api.Status().Patch(ctx, bucket, patch)
}

// mergePatch is a JSON merge patch with the change.
func mergePatch(change map[string]any) (client.Patch, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.MergePatchType, text), nil
}

func (w *writer) secretOf(bucket *storagev1.StorageBucket) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: ownedBy(bucket, &w.Secret, bucket.Name+accessSuffix), Type: w.Secret.Type, Data: w.Secret.Data,
	}
}

func (w *writer) serviceOf(bucket *storagev1.StorageBucket) *corev1.Service {
	return &corev1.Service{ObjectMeta: ownedBy(bucket, &w.Service, bucket.Name), Spec: w.Service.Spec}
}

// ownedBy is the metadata of the like of an owned object.
func ownedBy(bucket *storagev1.StorageBucket, like client.Object, name string) metav1.ObjectMeta {
	owner := like.GetOwnerReferences()[0]
	owner.Name, owner.UID = bucket.Name, bucket.UID
	return metav1.ObjectMeta{
		Namespace: bucket.Namespace, Name: name, Labels: like.GetLabels(), OwnerReferences: []metav1.OwnerReference{owner},
	}
}
