package storagebucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// provision makes the bucket at the provider what the spec wants.
func (r *run) provision(ctx context.Context) error {
	status := &r.bucket.Status
	r.knownSizeGB = status.SizeGB
	if status.ID != "" {
		// Puts back what somebody may have taken off.
		if _, err := r.pass.EnsureFinalizer(ctx, marks(r.presentKey(), status.Provider.Name, r.asked())); err != nil {
			return err
		}
	}
	if r.target == nil {
		return engine.Skipped()
	}
	through := storagev1.ObservedProvider{Name: r.target.Name, Revision: r.target.Revision}
	if settled(r.bucket, through) && !r.pass.ResyncDue() {
		return engine.Unchanged()
	}
	client, err := r.open(ctx)
	if err != nil {
		return err
	}
	if status.ID == "" {
		return r.create(ctx, client, through)
	}
	found, err := client.Get(ctx, status.ID)
	if errors.Is(err, provider.ErrNotFound) {
		return r.missing(ctx, client, through)
	}
	r.pass.Resynced()
	if err != nil {
		return r.failed(err)
	}
	status.VanishedID = ""
	status.Provider, status.Endpoint = through, r.target.Endpoint
	r.observe(found)
	r.grown()
	return r.converge(ctx, client, found)
}

func (r *run) open(ctx context.Context) (provider.Client, error) {
	client, err := r.Access.Open(ctx, *r.target)
	var bad *provider.Error
	switch {
	case errors.Is(err, outside.ErrSecretNotFound):
		return nil, engine.Blocked(storagev1.ReasonSecretNotFound, "%s", outside.SecretNotFound(r.target.Config))
	case errors.As(err, &bad):
		r.bucket.Status.Provider = storagev1.ObservedProvider{Name: r.target.Name, Revision: r.target.Revision}
		return nil, r.failed(bad)
	case err != nil:
		return nil, err
	}
	return client, nil
}

// create makes a bucket that does not exist yet, or finds the one that an
// earlier pass made without living to say so. Before the call the finalizer
// and the key are on the object, and the status does not claim that nothing exists.
func (r *run) create(ctx context.Context, client provider.Client, through storagev1.ObservedProvider) error {
	r.pass.Resynced()
	key, known, asked := r.presentKey(), attemptOf(r.bucket, r.pass.HasFinalizer()), r.want()
	if !keyBelongsTo(r.name(), key) {
		return engine.Terminal(storagev1.ReasonKeyInvalid, fmt.Errorf(
			"annotation %s was made for an object of another name or namespace: remove it", storagev1.IdempotencyKeyAnnotation))
	}
	switch known {
	case attemptInDoubt:
		asked = r.asked() // the same call again
	case attemptNone, attemptRefused, attemptMade:
	}
	if _, err := r.pass.EnsureFinalizer(ctx, marks(key, r.target.Name, asked)); err != nil {
		return err
	}
	if known == attemptNone {
		// After the write, so that one read serves all that write meanwhile.
		if err := r.confirmTarget(ctx); err != nil {
			r.bucket.Status.CreateOutcome = storagev1.CreateOutcomeNotSent
			return cmp.Or(r.pass.Checkpoint(ctx, storagev1.ReasonProvisioning, "the bucket is being created"), err)
		}
	}
	if err := r.openAttempt(ctx, client, known); err != nil {
		return err
	}
	logf.FromContext(ctx).Info("Creating the bucket", "region", asked.Region, "provider", r.target.Name)
	// The call goes on although the operator is told to stop: cut short, nobody
	// would know whether it was done. The client bounds its time.
	made, err := client.Create(context.WithoutCancel(ctx), key, asked)
	if known == attemptInDoubt && r.mayBeAtWork(err, makingSince(r.bucket, r.pass.Now())) {
		return r.askAgain(makingSince(r.bucket, r.pass.Now()), err)
	}
	if err != nil {
		r.refused(err, known, through)
		if known == attemptInDoubt && r.bucket.Status.CreateOutcome != "" && r.target.Leaving() {
			// The bucket is no longer bound to this configuration, which takes
			// no new ones: another pass says what follows from that.
			if err := r.pass.Checkpoint(ctx, storagev1.ReasonProvisioning, "the bucket was not created"); err != nil {
				return err
			}
			return engine.ErrStale
		}
		return r.failed(err)
	}
	r.took(made, key, asked, through)
	return r.converge(ctx, client, made)
}

// openAttempt makes it durable that a create call may have been made.
func (r *run) openAttempt(ctx context.Context, client provider.Client, known attempt) error {
	status := &r.bucket.Status
	switch known {
	case attemptNone:
		return nil // the write of the key says it
	case attemptInDoubt, attemptMade:
		return r.pass.ConfirmLatest(ctx)
	case attemptRefused:
	}
	if status.CreateOutcome == storagev1.CreateOutcomeRefused {
		// A provider that still does not answer, or still refuses the
		// credentials, is found out without a write.
		if err := client.Probe(ctx); err != nil {
			return r.failed(err)
		}
	}
	status.CreateOutcome = ""
	return r.pass.Checkpoint(ctx, storagev1.ReasonProvisioning, "the bucket is being created")
}

// refused notes that a create call made nothing, if that is certain: nothing
// had been made before, and this call was refused; or the very call that was
// in doubt was refused by the provider's own judgement. A conflict is no such
// judgement: it may be about the first call, however long that takes.
func (r *run) refused(err error, known attempt, through storagev1.ObservedProvider) {
	status, e := &r.bucket.Status, provider.AsError(err)
	if brief(e) {
		return // not worth a write: in doubt, the next pass finds out
	}
	status.Provider, status.Endpoint = through, r.target.Endpoint
	if known == attemptInDoubt && (e.Reason != provider.ReasonSpecRefused || e.Conflict) || !e.Refused {
		return
	}
	status.CreateOutcome = storagev1.CreateOutcomeRefused
	if ownLimit(e) {
		status.CreateOutcome = storagev1.CreateOutcomeNotSent
	}
	if status.VanishedID != "" && !ownLimit(e) {
		// Nothing was made in its place, and it may not be gone for good.
		status.ID, status.VanishedID, status.CreateOutcome = status.VanishedID, "", ""
	}
}

// took takes over the id of a new bucket, and sees to it that it is written
// down whatever else becomes of this pass.
func (r *run) took(made provider.Bucket, key string, asked provider.Spec, through storagev1.ObservedProvider) {
	status := &r.bucket.Status
	if status.VanishedID != "" {
		r.pass.Event(corev1.EventTypeWarning, storagev1.ReasonBucketVanished,
			"bucket %s was gone at the provider, with what was in it: bucket %s takes its place", status.VanishedID, made.ID)
	}
	r.pass.Persist(func(live engine.Object) bool {
		bucket, ok := live.(*storagev1.StorageBucket)
		if !ok || bucket.Status.ID != "" || bucket.Annotations[storagev1.IdempotencyKeyAnnotation] != key {
			return false
		}
		bucket.Status.ID, bucket.Status.VanishedID, bucket.Status.CreateOutcome = made.ID, "", ""
		bucket.Status.Provider, bucket.Status.Endpoint = through, r.target.Endpoint
		return true
	})
	status.ID, status.VanishedID = made.ID, ""
	status.Provider, status.Endpoint = through, r.target.Endpoint
	status.SizeGB = asked.SizeGB
	r.observe(made)
}

// missing decides what follows when the provider does not know the bucket.
// Another is made in its place, with nothing in it, so one such answer is not
// enough: it may come from a load balancer that knows no provider just now, and
// is asked for once more. It may also come from another account or another
// provider, if the configuration or its Secret has changed since the bucket was
// last seen: then there is time until the next resync to change it back.
func (r *run) missing(ctx context.Context, client provider.Client, through storagev1.ObservedProvider) error {
	status := &r.bucket.Status
	again := status.VanishedID == status.ID
	status.VanishedID = status.ID
	switch {
	case status.Provider != through && !r.pass.ResyncDue():
		return engine.Blocked(storagev1.ReasonBucketMissing,
			"the provider does not know bucket %s since the BucketProviderConfig, or its Secret, was changed: change it back, or another bucket is made at the next resync", status.ID)
	case !again:
		return engine.InProgress(storagev1.ReasonBucketMissing,
			"the provider does not know bucket %s: it is asked once more before another is made", status.ID).After(r.pollDelay(0))
	}
	return r.createAgain(ctx, client, through)
}

// createAgain makes a bucket in place of one that is gone at the provider. It
// needs a new key: under the old one the provider would answer with the old
// bucket. Until another is made the id of the old one is kept.
func (r *run) createAgain(ctx context.Context, client provider.Client, through storagev1.ObservedProvider) error {
	status := &r.bucket.Status
	logf.FromContext(ctx).Info("The bucket is gone at the provider")
	next := nextKey(r.name(), r.presentKey(), status.ID)
	if _, err := r.pass.EnsureFinalizer(ctx, marks(next, r.target.Name, r.want())); err != nil {
		return err
	}
	status.VanishedID = status.ID
	status.ID, status.SizeGB, status.Region, status.Encrypted = "", 0, "", nil
	status.Phase = storagev1.BucketPhaseProvisioning
	status.CreateOutcome = storagev1.CreateOutcomeNotSent // nothing was sent under the new key
	return r.create(ctx, client, through)
}

// observe takes over what the provider reports. What it leaves out stays as it was last known.
func (r *run) observe(found provider.Bucket) {
	status := &r.bucket.Status
	status.CreateOutcome = ""
	status.Region = cmp.Or(found.Region, status.Region)
	status.SizeGB = cmp.Or(found.SizeGB, status.SizeGB)
	if found.Encrypted != nil {
		status.Encrypted = found.Encrypted
	}
	switch found.Phase {
	case provider.Active:
		status.Phase = storagev1.BucketPhaseActive
	case provider.Failed:
		status.Phase = storagev1.BucketPhaseFailed
	case provider.Provisioning:
		status.Phase = storagev1.BucketPhaseProvisioning
	}
}

// converge waits until the provider has made the bucket, then gives it the
// size of the spec.
func (r *run) converge(ctx context.Context, client provider.Client, found provider.Bucket) error {
	if err := r.confirmSoleOwner(ctx); err != nil {
		return err
	}
	r.noteEncryption(found)
	switch found.Phase {
	case provider.Failed:
		return engine.Terminal(storagev1.ReasonBucketFailed, fmt.Errorf(
			"the provider has given bucket %s up: %s; delete this object, or have the provider mend the bucket",
			r.bucket.Status.ID, cmp.Or(found.Message, "it gives no reason")))
	case provider.Provisioning:
		r.noteSize(found)
		return engine.InProgress(storagev1.ReasonProvisioning, "the provider is making bucket %s", r.bucket.Status.ID).After(r.pollDelay(makingSince(r.bucket, r.pass.Now())))
	case provider.Active:
	}
	return r.fitSize(ctx, client, found)
}

// noteEncryption tells whether the bucket is encrypted as the spec wants it.
func (r *run) noteEncryption(found provider.Bucket) {
	want := r.want().Encrypted
	switch {
	case found.Encrypted == nil && r.bucket.Status.Encrypted == nil:
		r.pass.SetCondition(storagev1.ConditionEncryptionApplied, metav1.ConditionUnknown, storagev1.ReasonNotReported, "the provider does not report encryption")
	case *r.bucket.Status.Encrypted == want:
		r.pass.SetCondition(storagev1.ConditionEncryptionApplied, metav1.ConditionTrue, storagev1.ReasonApplied, "")
	default:
		r.pass.SetCondition(storagev1.ConditionEncryptionApplied, metav1.ConditionFalse, storagev1.ReasonNotSupported,
			"the provider reports encrypted=%t, spec.encrypted is %t: it cannot be changed for this bucket", *r.bucket.Status.Encrypted, want)
	}
}
