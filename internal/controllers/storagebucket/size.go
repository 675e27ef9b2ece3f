package storagebucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// fitSize gives an active bucket the size of the spec. A provider may take its
// time, and it may give another size, say by rounding up: it is asked once, and
// what it then shows for good is reported and left at that.
func (r *run) fitSize(ctx context.Context, client provider.Client, found provider.Bucket) error {
	status, size := &r.bucket.Status, r.bucket.Spec.SizeGB
	switch {
	case status.SizeGB == size:
		r.noteSize(found)
		return nil
	case r.sizeNoted(storagev1.ReasonSizeDiffers) && status.SizeGB == r.knownSizeGB:
		r.noteOtherSize()
		return nil
	case r.sizeNoted(storagev1.ReasonResizing):
		return r.awaitSize()
	}
	return r.resize(ctx, client)
}

func (r *run) resize(ctx context.Context, client provider.Client) error {
	status, size, was := &r.bucket.Status, r.bucket.Spec.SizeGB, r.bucket.Status.SizeGB
	logf.FromContext(ctx).Info("Resizing the bucket", "sizeGB", size)
	resized, err := client.Resize(ctx, status.ID, size)
	switch {
	case errors.Is(err, provider.ErrUnsupported):
		r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonNotSupported,
			"the provider cannot resize: spec.sizeGB %d is not applied", size)
		return nil
	case errors.Is(err, provider.ErrTerminal):
		r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonResizeRefused, "%s", provider.AsError(err).Message)
		return engine.Terminal(storagev1.ReasonResizeRefused, fmt.Errorf(
			"the provider refused spec.sizeGB %d, the bucket has %d: %w; change spec.sizeGB", size, status.SizeGB, err))
	case err != nil:
		r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionUnknown, engine.ReasonPending, "spec.sizeGB %d is not applied yet", size)
		return r.failed(err)
	}
	status.SizeGB = cmp.Or(resized.SizeGB, size)
	switch {
	case status.SizeGB == size:
		r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionTrue, storagev1.ReasonApplied, "")
		if !r.sizeNoted(storagev1.ReasonApplied) { // not one that agrees again and again, and does nothing
			r.announceResized(was)
		}
		return nil
	case status.SizeGB > size && r.knownSizeGB < size: // what grows to a size passes through no larger one
		r.noteOtherSize()
		return nil
	}
	return r.awaitSize()
}

// grown announces that a bucket which existed before this pass now has the size
// of the spec, after it was asked for: a provider may take its time, and the
// answer to the call may have been lost.
func (r *run) grown() {
	known := meta.FindStatusCondition(r.bucket.Status.Conditions, storagev1.ConditionSizeApplied) != nil
	if known && r.knownSizeGB != 0 && r.knownSizeGB != r.bucket.Spec.SizeGB && r.bucket.Status.SizeGB == r.bucket.Spec.SizeGB {
		r.announceResized(r.knownSizeGB)
	}
}

func (r *run) announceResized(was int32) {
	r.pass.Event(corev1.EventTypeNormal, storagev1.ReasonResized,
		"bucket %s was resized from %d to %d GB", r.bucket.Status.ID, was, r.bucket.Status.SizeGB)
}

// awaitSize waits for a size that the provider has agreed to.
func (r *run) awaitSize() error {
	since := r.resizingSince()
	if since >= r.patience() {
		r.noteOtherSize()
		return nil
	}
	r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionUnknown, storagev1.ReasonResizing,
		"the bucket does not have spec.sizeGB %d yet", r.bucket.Spec.SizeGB)
	return engine.InProgress(storagev1.ReasonResizing, "the provider is resizing bucket %s", r.bucket.Status.ID).After(r.pollDelay(since))
}

// resizingSince is how long the provider has had for the size that it agreed to.
func (r *run) resizingSince() time.Duration {
	if !r.sizeNoted(storagev1.ReasonResizing) {
		return 0
	}
	c := meta.FindStatusCondition(r.bucket.Status.Conditions, storagev1.ConditionSizeApplied)
	return r.pass.Now().Sub(c.LastTransitionTime.Time)
}

// noteSize tells whether the bucket has the size of the spec, where that needs
// no call.
func (r *run) noteSize(found provider.Bucket) {
	size := r.bucket.Spec.SizeGB
	switch {
	case found.SizeGB == 0:
		r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionUnknown, storagev1.ReasonNotReported, "the provider does not report the size")
	case found.SizeGB == size:
		r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionTrue, storagev1.ReasonApplied, "")
	case found.SizeGB > size && r.asked().SizeGB == size:
		r.noteOtherSize() // it was asked for this size, and answers with more
	}
}

func (r *run) noteOtherSize() {
	r.pass.SetCondition(storagev1.ConditionSizeApplied, metav1.ConditionFalse, storagev1.ReasonSizeDiffers,
		"the provider was asked for spec.sizeGB %d and made it %d", r.bucket.Spec.SizeGB, r.bucket.Status.SizeGB)
}

// sizeNoted tells whether the last word on the size, for the present spec, was reason.
func (r *run) sizeNoted(reason string) bool {
	c := meta.FindStatusCondition(r.bucket.Status.Conditions, storagev1.ConditionSizeApplied)
	return c != nil && c.Reason == reason && c.ObservedGeneration == r.bucket.Generation
}
