package storagebucket

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// letGoHint is what a person can do when the provider cannot be reached for good.
const letGoHint = "; to give the bucket up instead, set spec.deletionPolicy to Retain"

// remove deletes the bucket at the provider and makes sure that it is gone.
func (r *run) remove(ctx context.Context) error {
	status := &r.bucket.Status
	switch {
	case r.bucket.Spec.DeletionPolicy == storagev1.DeletionPolicyRetain:
		if status.ID != "" {
			r.pass.Announce(corev1.EventTypeNormal, storagev1.ReasonBucketRetained, "bucket %s is left at the provider", status.ID)
		}
		return nil
	case r.neverCreated():
		return nil
	}
	if err := r.resolve(ctx); err != nil {
		return withHint(err)
	}
	client, err := r.open(ctx)
	if err != nil {
		return withHint(err)
	}
	if status.ID == "" {
		gone, err := r.recoverID(ctx, client)
		if gone || err != nil {
			return withHint(err)
		}
	}
	logf.FromContext(ctx).Info("Deleting the bucket")
	if err := client.Delete(ctx, status.ID); err != nil {
		return withHint(r.failed(err))
	}
	_, err = client.Get(ctx, status.ID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		r.pass.Announce(corev1.EventTypeNormal, storagev1.ReasonBucketDeleted, "bucket %s is deleted at the provider", status.ID)
		return nil
	case err != nil:
		return withHint(r.failed(err))
	}
	return engine.Wait(r.pollDelay(r.pass.Now().Sub(r.bucket.DeletionTimestamp.Time)),
		engine.ReasonDeleting, "the provider is deleting bucket %s", status.ID)
}

// neverCreated tells whether it is certain that there is no bucket.
func (r *run) neverCreated() bool {
	_, marked := r.bucket.Annotations[storagev1.IdempotencyKeyAnnotation]
	return r.bucket.Status.ID == "" && (!marked || r.bucket.Status.CreateOutcome != "")
}

// recoverID finds out the id of a bucket that may have been created although
// nobody lived to write it down. The protocol has one way to ask: the same
// create call again. gone is true when the answer shows that there is no bucket.
func (r *run) recoverID(ctx context.Context, client provider.Client) (gone bool, err error) {
	key := r.presentKey()
	if !keyBelongsTo(r.name(), key) {
		return true, nil // such a key was never sent
	}
	if err := r.pass.Fresh(ctx); err != nil {
		return false, err
	}
	made, err := client.Create(ctx, key, r.want())
	switch {
	case err != nil && provider.AsError(err).Reason == provider.ReasonSpecRefused:
		return true, nil // refused now, so it was refused before
	case err != nil:
		return false, r.failed(err)
	}
	r.bucket.Status.ID = made.ID
	return false, r.pass.Checkpoint(ctx, engine.ReasonDeleting, "being deleted")
}

// withHint adds to an error that blocks a deletion how to do without.
func withHint(err error) error {
	return engine.Amend(err, func(message string) string { return fmt.Sprint(message, letGoHint) })
}
