// Package child keeps the objects in the cluster that an object owns.
//
// Ensure is for small objects that are the owner's alone: a Secret, a Service.
// Apply is for workloads and whatever others write to as well: it sets the
// fields that are ours and leaves the rest alone. Neither touches an object
// that the owner does not control, by uid.
package child

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
)

// ownership is how a live object stands to the pass's object.
type ownership int

const (
	owned    ownership = iota
	adopting           // nobody's, and to become the pass's object's own
)

// claim tells whether a live object is the pass's object's own, and stays. One
// that nobody controls is adopted if it carries the operator's label and
// identifies, which may be nil, recognizes it: a restore drops owner references.
func claim(p *engine.Pass, kind string, live client.Object, identified bool, conflict string) (ownership, error) {
	owner := metav1.GetControllerOf(live)
	mine := owner != nil && owner.UID == p.Object().GetUID()
	switch {
	case mine && live.GetDeletionTimestamp().IsZero():
		return owned, nil
	case mine:
		return owned, engine.InProgress(apimeta.ReasonChildTerminating, "%s %s is being deleted: it is made again when it is gone", kind, live.GetName())
	case owner != nil && isKindOf(owner, p) && owner.Name == p.Object().GetName():
		return owned, engine.InProgress(apimeta.ReasonPredecessorRemains,
			"%s %s belongs to a deleted object of this name and is about to be collected", kind, live.GetName())
	case owner == nil && live.GetDeletionTimestamp().IsZero() && live.GetLabels()[engine.Label] == engine.LabelValue && identified:
		return adopting, nil
	}
	return owned, engine.Blocked(conflict,
		"there is a %s %s that this object does not own, so it is left alone: delete or rename it", kind, live.GetName()).Stalled()
}

func isKindOf(owner *metav1.OwnerReference, p *engine.Pass) bool {
	gvk, err := apiutil.GVKForObject(p.Object(), p.Scheme())
	group, _ := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gvk.Kind == owner.Kind && gvk.Group == group.Group
}

// failure is what a write of a child that failed means for the step.
func failure(kind, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		return engine.Requeue(cacheLag)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return engine.InProgress(apimeta.ReasonNamespaceTerminating, "the namespace is being deleted")
	case apierrors.IsInvalid(err):
		// By the API server itself, or by a policy that may be gone tomorrow.
		return engine.Blocked(apimeta.ReasonChildRefused, "the API server refused %s %s: %s", kind, name, err).Stalled()
	}
	return engine.Failed(apimeta.ReasonChildFailed, fmt.Errorf("writing %s %s: %w", kind, name, Stable(err)))
}

// refusesField tells whether the API server itself refuses the value of a field.
// A policy that refuses an object names none.
func refusesField(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) || status.ErrStatus.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
}

// Stable hides texts that differ from one try to the next, such as those of
// a lost connection, from what ends up in a condition.
func Stable(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return &plainError{text: "the API server could not be reached", cause: err}
}

type plainError struct {
	text  string
	cause error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.cause }

// Remove deletes the object of want's kind, namespace and name if the pass's
// object controls it.
func Remove(ctx context.Context, p *engine.Pass, want client.Object) error {
	live := want.DeepCopyObject().(client.Object)
	err := p.Client().Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return engine.Failed(apimeta.ReasonChildFailed, fmt.Errorf("reading %s: %w", want.GetName(), Stable(err)))
	case !metav1.IsControlledBy(live, p.Object()) || !live.GetDeletionTimestamp().IsZero():
		return nil
	}
	return remove(ctx, p, live)
}

// remove deletes a live object, and no successor of it.
func remove(ctx context.Context, p *engine.Pass, live client.Object) error {
	uid := live.GetUID()
	err := p.Client().Delete(ctx, live, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return engine.Failed(apimeta.ReasonChildFailed, fmt.Errorf("deleting %s: %w", live.GetName(), Stable(err)))
	}
	return nil
}
