package engine

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed lets through what a kind has to act on: a new spec, a deletion, a
// finalizer or annotation of the operator's that somebody took away or altered, a
// trigger that a user has set. The echo of the engine's own writes, and what
// others do to labels and the like, stay out.
func Changed(traits Traits) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld == nil || e.ObjectNew == nil {
				return false
			}
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
				damaged(e.ObjectOld, e.ObjectNew, traits) || triggered(e.ObjectOld, e.ObjectNew, traits)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// damaged tells whether somebody has taken away or altered what the operator keeps.
func damaged(before, after client.Object, traits Traits) bool {
	if controllerutil.ContainsFinalizer(before, traits.Finalizer) && !controllerutil.ContainsFinalizer(after, traits.Finalizer) {
		return true
	}
	for _, key := range traits.Annotations {
		if old, ok := before.GetAnnotations()[key]; ok && old != after.GetAnnotations()[key] {
			return true
		}
	}
	return false
}

// triggered tells whether a user has set, changed or removed a trigger.
func triggered(before, after client.Object, traits Traits) bool {
	for _, key := range traits.Triggers {
		old, was := before.GetAnnotations()[key]
		if value, is := after.GetAnnotations()[key]; was != is || old != value {
			return true
		}
	}
	return false
}
