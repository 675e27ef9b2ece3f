package engine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Label and LabelValue mark what the operator owns: its informers of owned
// kinds select on them.
const (
	Label      = "app.kubernetes.io/managed-by"
	LabelValue = "bucketoperator"
)

// Child is an object in the cluster that the pass's object owns.
type Child[C client.Object] struct {
	// Want is the whole object as it is created. Own adds the owner reference
	// and Label.
	Want C
	// Empty is an empty object of the same kind.
	Empty C
	// Same tells whether a live object is as wanted in all that is owned.
	Same func(live C) bool
	// Correct makes a live object as wanted in all that is owned, and leaves
	// the rest as it is.
	Correct func(live C)
	// Conflict is the reason of the condition when somebody else's object has the name.
	Conflict string
}

// Own makes sure that the child exists as wanted. A missing one is created, one
// that differs is updated, both with plain writes: these cost the API server
// least, and unlike an apply can take away what a stranger has added, such as
// a selector. An object of that name that the pass's object does not control,
// by uid, is never touched.
func Own[C client.Object](ctx context.Context, p *Pass, child Child[C]) error {
	want := child.Want
	gvk, err := apiutil.GVKForObject(want, p.scheme)
	if err != nil {
		return fmt.Errorf("looking up the kind of a child: %w", err)
	}
	want.SetLabels(with(want.GetLabels(), map[string]string{Label: LabelValue}))
	if err := controllerutil.SetControllerReference(p.obj, want, p.scheme, controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("owning %s %s: %w", gvk.Kind, want.GetName(), err)
	}

	live := child.Empty
	err = p.writer.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		logf.FromContext(ctx).V(1).Info("Creating an owned object", gvk.Kind, want.GetName())
		err = p.writer.client.Create(ctx, want, client.FieldOwner(FieldManager))
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return childError(gvk.Kind, want.GetName(), err)
		}
		err = p.writer.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	}
	if err != nil {
		return childError(gvk.Kind, want.GetName(), err)
	}
	if err := p.controls(gvk.Kind, live, child.Conflict); err != nil {
		return err
	}
	if child.Same(live) && live.GetLabels()[Label] == LabelValue {
		return nil
	}
	child.Correct(live)
	live.SetLabels(with(live.GetLabels(), want.GetLabels()))
	logf.FromContext(ctx).Info("Putting an owned object right", gvk.Kind, want.GetName())
	err = p.writer.client.Update(ctx, live, client.FieldOwner(FieldManager))
	if apierrors.IsInvalid(err) {
		// Something has been set that cannot be changed back: another takes its place.
		if err := p.remove(ctx, live); err != nil {
			return err
		}
		return Wait(0, "ChildTerminating", "%s %s could not be put right and is made again", gvk.Kind, want.GetName())
	}
	return childError(gvk.Kind, want.GetName(), err)
}

// controls tells whether a live object is the pass's object's own, and stays.
func (p *Pass) controls(kind string, live client.Object, conflict string) error {
	owner := metav1.GetControllerOf(live)
	switch {
	case owner != nil && owner.UID == p.obj.GetUID() && live.GetDeletionTimestamp().IsZero():
		return nil
	case owner != nil && owner.UID == p.obj.GetUID():
		return Wait(0, "ChildTerminating", "%s %s is being deleted: it is made again when it is gone", kind, live.GetName())
	case owner != nil && isKindOf(owner, p) && owner.Name == p.obj.GetName():
		return Wait(0, "PredecessorRemains", "%s %s belongs to a deleted object of this name and is about to be collected", kind, live.GetName())
	}
	return Invalid(conflict, fmt.Errorf("there is a %s %s that this object does not own, so it is left alone: delete or rename it", kind, live.GetName()))
}

func isKindOf(owner *metav1.OwnerReference, p *Pass) bool {
	gvk, err := apiutil.GVKForObject(p.obj, p.scheme)
	group, _ := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gvk.Kind == owner.Kind && gvk.Group == group.Group
}

func childError(kind, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		return Again(minCatchUp) // the cache lags behind the child
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Wait(0, "NamespaceTerminating", "the namespace is being deleted")
	case apierrors.IsInvalid(err):
		return Invalid("ChildRefused", fmt.Errorf("the API server refused %s %s: %w", kind, name, err))
	}
	return Because("ChildFailed", fmt.Errorf("writing %s %s: %w", kind, name, Stable(err)))
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

// Disown deletes the object of want's kind, namespace and name if the pass's
// object controls it.
func Disown(ctx context.Context, p *Pass, want client.Object) error {
	live := want.DeepCopyObject().(client.Object)
	err := p.writer.client.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return Because("ChildFailed", fmt.Errorf("reading %s: %w", want.GetName(), Stable(err)))
	case !metav1.IsControlledBy(live, p.obj) || !live.GetDeletionTimestamp().IsZero():
		return nil
	}
	return p.remove(ctx, live)
}

// remove deletes a live object, and no successor of it.
func (p *Pass) remove(ctx context.Context, live client.Object) error {
	uid := live.GetUID()
	err := p.writer.client.Delete(ctx, live, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return Because("ChildFailed", fmt.Errorf("deleting %s: %w", live.GetName(), Stable(err)))
	}
	return nil
}
