package engine

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changed lets through what a kind has to act on: a new spec, a deletion, a
// finalizer or mark that somebody took away or altered. The echo of the
// engine's own writes, and what others do to labels and the like, stay out.
func Changed(finalizer string, marks ...string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld == nil || e.ObjectNew == nil {
				return false
			}
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
				lost(e.ObjectOld, e.ObjectNew, finalizer, marks)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func lost(before, after client.Object, finalizer string, marks []string) bool {
	if controllerutil.ContainsFinalizer(before, finalizer) && !controllerutil.ContainsFinalizer(after, finalizer) {
		return true
	}
	for _, key := range marks {
		if old, ok := before.GetAnnotations()[key]; ok && old != after.GetAnnotations()[key] {
			return true
		}
	}
	return false
}

// ChildChanged lets through what may have harmed an owned object. That one was
// made is no news: whoever made it knows.
func ChildChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
