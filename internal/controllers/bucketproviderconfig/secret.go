package bucketproviderconfig

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
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
		return engine.Missing(storagev1.ReasonSecretNotFound, "%s", outside.SecretNotFound(name))
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
	r.pass.Clear(storagev1.ConditionSecretKept)
	for i := range held {
		if r.needed(ctx, &held[i]) {
			continue
		}
		if err := r.patchFinalizers(ctx, &held[i], controllerutil.RemoveFinalizer); err != nil {
			return err
		}
	}
	return nil
}

// needed tells whether a Secret must be kept.
func (r *run) needed(ctx context.Context, secret *metav1.PartialObjectMetadata) bool {
	for _, config := range index.ConfigsOf(ctx, r.Client, secret.Namespace, secret.Name) {
		if config.UID == r.config.UID && (!r.config.DeletionTimestamp.IsZero() || r.config.Spec.SecretRef.Name != secret.Name) {
			continue // this one is done with it
		}
		if secret.DeletionTimestamp.IsZero() {
			return true
		}
		users := index.BucketsOf(ctx, r.Client, config.Namespace, config.Name, maxNamed+1)
		if len(users) == 0 {
			continue
		}
		if config.UID == r.config.UID {
			r.pass.Note(storagev1.ConditionSecretKept, metav1.ConditionTrue, storagev1.ReasonInUse,
				"Secret %s is being deleted. %s", secret.Name, inUse(users))
		}
		return true
	}
	return false
}

func (r *run) patchFinalizers(ctx context.Context, secret *metav1.PartialObjectMetadata, change func(client.Object, string) bool) error {
	base := secret.DeepCopy()
	if !change(secret, storagev1.ConfigFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, secret, patch, client.FieldOwner(engine.FieldManager))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return engine.ErrStale
	case err != nil:
		return fmt.Errorf("patching the finalizers of Secret %s: %w", secret.Name, err)
	}
	return nil
}
