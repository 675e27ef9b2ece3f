// Package index holds the field indexes of the caches, so that what uses an
// object is looked up and never searched for.
package index

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/operator"
)

const (
	bucketsByConfig = "providers"
	bucketsByID     = "id"
	configsBySecret = "secretRef"
	secretsHeld     = "held"
)

// Indexes are those of the group.
var Indexes = []operator.Index{
	{Object: &storagev1.StorageBucket{}, Field: bucketsByConfig, Values: func(o client.Object) []string {
		return ConfigsServing(o.(*storagev1.StorageBucket))
	}},
	{Object: &storagev1.StorageBucket{}, Field: bucketsByID, Values: func(o client.Object) []string {
		return idAt(o.(*storagev1.StorageBucket))
	}},
	{Object: &storagev1.BucketProviderConfig{}, Field: configsBySecret, Values: func(o client.Object) []string {
		return []string{o.(*storagev1.BucketProviderConfig).Spec.SecretRef.Name}
	}},
	{Object: outside.NewSecretMetadata(), Field: secretsHeld, Values: func(o client.Object) []string {
		if controllerutil.ContainsFinalizer(o, storagev1.ConfigFinalizer) {
			return []string{"true"}
		}
		return nil
	}},
}

// ConfigsServing are the names of the configurations that serve a bucket, or
// are to: the one it was created through, the one that its spec names.
func ConfigsServing(bucket *storagev1.StorageBucket) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	marked, bound := bucket.Annotations[storagev1.ProviderAnnotation]
	add(bucket.Status.Provider.Name)
	add(marked)
	add(bucket.Spec.ProviderRef)
	if bucket.Spec.ProviderRef == "" && (!bound || bucket.Status.ID == "") {
		add(storagev1.DefaultBucketProviderConfigName)
	}
	return names
}

// idAt is a bucket's id together with the configuration that it was made
// through: ids of two accounts may be alike.
func idAt(bucket *storagev1.StorageBucket) []string {
	if bucket.Status.ID == "" {
		return nil
	}
	return []string{bucket.Status.Provider.Name + "/" + bucket.Status.ID}
}

// SharersOf are the other StorageBuckets that the same configuration, or the
// operator's default endpoint, has given the same id, less those that are being
// deleted together with their bucket. They are shared with the cache: read only.
func SharersOf(ctx context.Context, reader client.Reader, bucket *storagev1.StorageBucket) ([]storagev1.StorageBucket, error) {
	key := idAt(bucket)
	if key == nil {
		return nil, nil
	}
	options := []client.ListOption{client.MatchingFields{bucketsByID: key[0]}, client.UnsafeDisableDeepCopy}
	if bucket.Status.Provider.Name != "" {
		options = append(options, client.InNamespace(bucket.Namespace))
	}
	list := &storagev1.StorageBucketList{}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("looking up the StorageBuckets with id %s: %w", bucket.Status.ID, err)
	}
	var others []storagev1.StorageBucket
	for _, other := range list.Items {
		leaves := !other.DeletionTimestamp.IsZero() && other.Spec.DeletionPolicy != storagev1.DeletionPolicyRetain
		if other.UID != bucket.UID && !leaves {
			others = append(others, other)
		}
	}
	return others, nil
}

// BucketsOf are the buckets that a configuration serves, at most limit of them
// when that is not 0. They are shared with the cache: read only.
func BucketsOf(ctx context.Context, reader client.Reader, namespace, config string, limit int64) ([]storagev1.StorageBucket, error) {
	list := &storagev1.StorageBucketList{}
	err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{bucketsByConfig: config},
		client.Limit(limit), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("looking up the buckets of BucketProviderConfig %s: %w", config, err)
	}
	return list.Items, nil
}

// ConfigsOf are the configurations that name a Secret. They are shared with
// the cache: read only.
func ConfigsOf(ctx context.Context, reader client.Reader, namespace, secret string) ([]storagev1.BucketProviderConfig, error) {
	list := &storagev1.BucketProviderConfigList{}
	err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{configsBySecret: secret}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("looking up the configurations of Secret %s: %w", secret, err)
	}
	return list.Items, nil
}

// UsableConfigs are the names of the namespace's configurations that take new buckets.
func UsableConfigs(ctx context.Context, reader client.Reader, namespace string) ([]string, error) {
	list := &storagev1.BucketProviderConfigList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the namespace's BucketProviderConfigs: %w", err)
	}
	var names []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// HeldSecrets are the Secrets of a namespace that carry the finalizer.
func HeldSecrets(ctx context.Context, metadata client.Reader, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(outside.NewSecretMetadata().GroupVersionKind())
	if err := metadata.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{secretsHeld: "true"}); err != nil {
		return nil, fmt.Errorf("looking up the Secrets that are kept: %w", err)
	}
	return list.Items, nil
}

// Requests asks for a pass over each of the buckets.
func Requests(buckets []storagev1.StorageBucket) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(buckets))
	for i := range buckets {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&buckets[i])})
	}
	return requests
}
