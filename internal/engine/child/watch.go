package child

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Harmed lets through what may have harmed an owned object. That one was made is
// no news: the pass that made it knows.
func Harmed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return resourceVersionChanged(e) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Moved lets through all events, creation among them, of objects that others make,
// such as pods.
func Moved() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc:  func(e event.UpdateEvent) bool { return resourceVersionChanged(e) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func resourceVersionChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
}

// Ancestor leads from an object to the object of kind ancestor that owns it
// through others: from a pod by way of its StatefulSet to a Cache. via are empty
// objects of the kinds in between, nearest first, which cached reads from a cache.
func Ancestor(cached client.Reader, scheme *runtime.Scheme, ancestor client.Object, via ...client.Object) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		for _, next := range via {
			owner := metav1.GetControllerOf(object)
			if !refersTo(scheme, owner, next) {
				return nil
			}
			between := next.DeepCopyObject().(client.Object)
			err := cached.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}, between)
			if err != nil || between.GetUID() != owner.UID {
				// One that is gone has had an event of its own.
				if client.IgnoreNotFound(err) != nil {
					logf.FromContext(ctx).Error(err, "Looking up the owner of an object", "kind", owner.Kind, "name", owner.Name)
				}
				return nil
			}
			object = between
		}
		owner := metav1.GetControllerOf(object)
		if !refersTo(scheme, owner, ancestor) {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}}
	}
}

// refersTo tells whether an owner reference is to an object of the kind.
func refersTo(scheme *runtime.Scheme, owner *metav1.OwnerReference, kind client.Object) bool {
	if owner == nil {
		return false
	}
	gvk, err := apiutil.GVKForObject(kind, scheme)
	group, parseErr := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && parseErr == nil && owner.Kind == gvk.Kind && group.Group == gvk.Group
}
