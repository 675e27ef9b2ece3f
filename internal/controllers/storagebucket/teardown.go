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
	status, known := &r.bucket.Status, attemptOf(r.bucket, r.pass.HasFinalizer())
	switch {
	case r.bucket.Spec.DeletionPolicy == storagev1.DeletionPolicyRetain:
		if status.ID != "" {
			r.pass.Event(corev1.EventTypeNormal, storagev1.ReasonBucketRetained, "bucket %s is left at the provider", status.ID)
		}
		return nil
	case known == attemptNone, known == attemptRefused:
		return nil
	}
	if err := r.resolve(ctx); err != nil {
		return withHint(err)
	}
	client, err := r.open(ctx)
	if err != nil {
		return withHint(err)
	}
	// The last moment to notice that somebody has changed deletionPolicy.
	if err := r.pass.ConfirmLatest(ctx); err != nil {
		return err
	}
	if known == attemptInDoubt {
		gone, err := r.recoverID(ctx, client)
		if gone || err != nil {
			return withHint(err)
		}
	}
	if shared, err := r.leaveToOthers(ctx); shared || err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Deleting the bucket")
	refusal := client.Delete(ctx, status.ID)
	if refusal != nil && !errors.Is(refusal, provider.ErrTerminal) {
		return withHint(r.failed(refusal))
	}
	// A refusal may mean that it is on its way out already: a read tells.
	_, err = client.Get(ctx, status.ID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		r.pass.Event(corev1.EventTypeNormal, storagev1.ReasonBucketDeleted, "bucket %s is deleted at the provider", status.ID)
		return nil
	case err != nil:
		return withHint(r.failed(err))
	case refusal != nil:
		return withHint(r.failed(refusal))
	}
	return engine.InProgress(engine.ReasonDeleting, "the provider is deleting bucket %s", status.ID).After(r.pollDelay(r.pass.Now().Sub(r.bucket.DeletionTimestamp.Time)))
}

// recoverID finds out the id of a bucket that may have been created although
// nobody lived to write it down. The protocol has one way to ask: the very
// same create call again. gone is true when the answer shows that there is no
// bucket.
func (r *run) recoverID(ctx context.Context, client provider.Client) (gone bool, err error) {
	key := r.presentKey()
	if !keyBelongsTo(r.name(), key) {
		return true, nil // such a key was never sent
	}
	asked := r.asked()
	made, err := client.Create(context.WithoutCancel(ctx), key, asked)
	leaving := r.pass.Now().Sub(r.bucket.DeletionTimestamp.Time)
	switch {
	case r.mayBeAtWork(err, leaving):
		return false, r.askAgain(leaving, err)
	case err != nil && provider.AsError(err).Conflict:
		return false, r.failed(err) // tells nothing of whether there is a bucket
	case err != nil && provider.AsError(err).Reason == provider.ReasonSpecRefused:
		return true, nil // the same call is refused now, so it was refused before
	case err != nil:
		return false, r.failed(err)
	}
	r.took(made, key, asked, storagev1.ObservedProvider{Name: r.target.Name, Revision: r.target.Revision})
	return false, r.pass.Checkpoint(ctx, engine.ReasonDeleting, "being deleted")
}

// withHint adds to an error that blocks a deletion how to do without.
func withHint(err error) error {
	return engine.AmendMessage(err, func(message string) string { return fmt.Sprint(message, letGoHint) })
}
