package bucketproviderconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// keepSecret puts the finalizer on the Secret that the configuration names. A
// Secret that is already being deleted gets none: it stays while buckets use
// it, if it has one.
func (r *run) keepSecret(ctx context.Context) error {
	name := r.config.Spec.SecretRef.Name
	if name == "" {
		return nil
	}
	secret, err := r.Access.SecretMetadata(ctx, types.NamespacedName{Namespace: r.config.Namespace, Name: name})
	switch {
	case err != nil:
		return err
	case secret == nil:
		return engine.Blocked(storagev1.ReasonSecretNotFound, "%s", outside.SecretNotFound(r.config))
	case controllerutil.ContainsFinalizer(secret, storagev1.ConfigFinalizer), !secret.DeletionTimestamp.IsZero():
		return nil
	}
	return r.patchFinalizers(ctx, secret, controllerutil.AddFinalizer)
}

// releaseSecrets takes the finalizer off the namespace's Secrets that no
// configuration needs any more: no other one names them, or they are being
// deleted and no bucket uses them.
func (r *run) releaseSecrets(ctx context.Context) error {
	held, err := index.HeldSecrets(ctx, r.Access.Metadata, r.config.Namespace)
	if err != nil {
		return err
	}
	r.pass.RemoveCondition(storagev1.ConditionSecretKept)
	for i := range held {
		if err := r.releaseUnlessNeeded(ctx, &held[i]); err != nil {
			return err
		}
	}
	return nil
}

// releaseOwnSecret does so for the Secret that the configuration names, as the
// API server has it: the cache may not have seen yet that it is kept.
func (r *run) releaseOwnSecret(ctx context.Context) error {
	if r.config.Spec.SecretRef.Name == "" {
		return nil
	}
	secret := outside.NewSecretMetadata()
	err := r.Access.Live.Get(ctx, types.NamespacedName{Namespace: r.config.Namespace, Name: r.config.Spec.SecretRef.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the metadata of Secret %s: %w", r.config.Spec.SecretRef.Name, child.Stable(err))
	}
	return r.releaseUnlessNeeded(ctx, secret)
}

func (r *run) releaseUnlessNeeded(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	if !controllerutil.ContainsFinalizer(secret, storagev1.ConfigFinalizer) {
		return nil
	}
	needed, err := r.needed(ctx, secret)
	if needed || err != nil {
		return err
	}
	return r.patchFinalizers(ctx, secret, controllerutil.RemoveFinalizer)
}

// needed tells whether a Secret must be kept: a configuration that stays names
// it, or one whose buckets still use it. What the cache says is confirmed with
// the API server before anything is let go.
func (r *run) needed(ctx context.Context, secret *metav1.PartialObjectMetadata) (bool, error) {
	configs, err := index.ConfigsOf(ctx, r.Client, secret.Namespace, secret.Name)
	if err != nil {
		return false, err
	}
	if needed, err := r.neededBy(ctx, secret, configs); needed || err != nil {
		return needed, err
	}
	live := &storagev1.BucketProviderConfigList{}
	if err := r.Access.Live.List(ctx, live, client.InNamespace(secret.Namespace)); err != nil {
		return false, fmt.Errorf("listing the namespace's BucketProviderConfigs: %w", child.Stable(err))
	}
	return r.neededBy(ctx, secret, live.Items)
}

func (r *run) neededBy(ctx context.Context, secret *metav1.PartialObjectMetadata, configs []storagev1.BucketProviderConfig) (bool, error) {
	for i := range configs {
		config := &configs[i]
		if config.UID == r.config.UID {
			config = r.config // the newest of it that is known
		}
		if config.Spec.SecretRef.Name != secret.Name {
			continue
		}
		if config.DeletionTimestamp.IsZero() && secret.DeletionTimestamp.IsZero() {
			return true, nil
		}
		users, err := index.BucketsOf(ctx, r.Client, config.Namespace, config.Name, maxNamed+1)
		if err != nil {
			return false, err
		}
		if len(users) == 0 {
			continue
		}
		if config.UID == r.config.UID && !secret.DeletionTimestamp.IsZero() {
			r.noteKept(secret.Name, users)
		}
		return true, nil
	}
	return false, nil
}

// noteKept tells that the Secret goes once no bucket uses it, and records an
// event when that begins: whoever deleted it may think that it can be applied anew.
func (r *run) noteKept(secret string, users []storagev1.StorageBucket) {
	message := fmt.Sprintf("Secret %s is being deleted. %s. What is applied onto it until then goes with it: "+
		"make another Secret, and set spec.secretRef.name to that", secret, inUse(users))
	r.pass.SetCondition(storagev1.ConditionSecretKept, metav1.ConditionTrue, storagev1.ReasonInUse, "%s", message)
	if !meta.IsStatusConditionTrue(r.config.Status.Conditions, storagev1.ConditionSecretKept) {
		r.pass.Event(corev1.EventTypeWarning, storagev1.ReasonInUse, "%s: %s", storagev1.ConditionSecretKept, message)
	}
}

// patchFinalizers changes the finalizers of a Secret, of which the caches hold
// some only: the patch is made from what the API server has.
func (r *run) patchFinalizers(ctx context.Context, secret *metav1.PartialObjectMetadata, change func(client.Object, string) bool) error {
	live := outside.NewSecretMetadata()
	err := r.Access.Live.Get(ctx, client.ObjectKeyFromObject(secret), live)
	switch {
	case apierrors.IsNotFound(err):
		return engine.ErrStale
	case err != nil:
		return fmt.Errorf("reading the metadata of Secret %s: %w", secret.Name, child.Stable(err))
	case live.UID != secret.UID, live.ResourceVersion != secret.ResourceVersion:
		return engine.ErrStale // what was decided on is not so any more
	}
	base := live.DeepCopy()
	if !change(live, storagev1.ConfigFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	err = r.Client.Patch(ctx, live, patch, client.FieldOwner(engine.FieldManager))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return engine.ErrStale
	case err != nil:
		return fmt.Errorf("patching the finalizers of Secret %s: %w", secret.Name, err)
	}
	return nil
}
