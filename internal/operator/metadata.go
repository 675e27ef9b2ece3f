package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxText is the longest text of somebody else's that is held, in bytes. What the
// API server lets nobody write longer is not cut.
const maxText = 253

// metadataReader reads the metadata of objects from the caches: those without the
// operator's label from the cache of metadata, those with it from the manager's.
// An object that gets or loses the label may be in none of the two for a moment;
// watches of both wake whoever missed it.
type metadataReader struct{ *caches }

var _ client.Reader = metadataReader{}

// Get reads into a *metav1.PartialObjectMetadata with its kind set.
func (r metadataReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	gvk, is := metadataKind(into)
	if !is {
		return fmt.Errorf("%T is no metadata with its kind set", into)
	}
	err := r.metadata.Get(ctx, key, into, options...)
	if !r.own[gvk] || !apierrors.IsNotFound(err) {
		return err
	}
	whole, failed := r.newObject(gvk)
	if failed != nil {
		return failed
	}
	if err := r.objects.Get(ctx, key, whole, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	*into.(*metav1.PartialObjectMetadata) = r.asMetadata(whole, gvk)
	return nil
}

// List reads into a *metav1.PartialObjectMetadataList with the kind of its items set.
func (r metadataReader) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	list, is := into.(*metav1.PartialObjectMetadataList)
	if !is {
		return fmt.Errorf("%T is no list of metadata", into)
	}
	// As with clients, the kind of the list means that of its items.
	gvk := list.GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if err := r.metadata.List(ctx, into, options...); err != nil || !r.own[gvk] {
		return err
	}
	made, err := r.scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return fmt.Errorf("making an empty list of %s: %w", gvk.Kind, err)
	}
	wholes, ok := made.(client.ObjectList)
	if !ok {
		return fmt.Errorf("%T is no list of objects", made)
	}
	if err := r.objects.List(ctx, wholes, append(slices.Clone(options), client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	listed := sets.New[types.UID]()
	for i := range list.Items {
		listed.Insert(list.Items[i].UID)
	}
	return meta.EachListItem(wholes, func(item runtime.Object) error {
		if whole := item.(client.Object); !listed.Has(whole.GetUID()) {
			list.Items = append(list.Items, r.asMetadata(whole, gvk))
		}
		return nil
	})
}

// metadataKind is the kind of empty metadata; false when object is something else.
func metadataKind(object client.Object) (schema.GroupVersionKind, bool) {
	metadata, is := object.(*metav1.PartialObjectMetadata)
	if !is {
		return schema.GroupVersionKind{}, false
	}
	return metadata.GroupVersionKind(), !metadata.GroupVersionKind().Empty()
}

// asMetadata is what the cache of metadata would hold of an object.
func (c *caches) asMetadata(whole client.Object, gvk schema.GroupVersionKind) metav1.PartialObjectMetadata {
	metadata := metav1.PartialObjectMetadata{ObjectMeta: c.bareMeta(whole)}
	metadata.SetGroupVersionKind(gvk)
	return metadata
}

// bare is the transform of the cache of metadata.
func (c *caches) bare(in any) (any, error) {
	if metadata, ok := in.(*metav1.PartialObjectMetadata); ok {
		metadata.ObjectMeta = c.bareMeta(metadata)
	}
	return in, nil
}

// bareMeta is what is held of an object's metadata: nothing whose size its owner
// chooses. An annotation may hold the whole object as it was applied, a Secret's
// values among it, and labels, finalizers and owners may be many. Of the
// finalizers there are the operator's and one other, so that it can be told
// whether there is one: a patch of them must be made from what the API server has.
// Of the owners there is the controller.
func (c *caches) bareMeta(object client.Object) metav1.ObjectMeta {
	bare := metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), DeletionTimestamp: object.GetDeletionTimestamp().DeepCopy(),
	}
	foreign := false
	for _, finalizer := range object.GetFinalizers() {
		if slices.Contains(c.finalizers, finalizer) {
			bare.Finalizers = append(bare.Finalizers, finalizer)
		} else if !foreign {
			foreign = true
			bare.Finalizers = append(bare.Finalizers, short(finalizer))
		}
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		bare.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: short(owner.APIVersion), Kind: short(owner.Kind), Name: short(owner.Name),
			UID: types.UID(short(string(owner.UID))), Controller: new(true),
		}}
	}
	return bare
}

// short is a text, cut where it is too long.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.Clone(text[:maxText]) // or the rest would stay in memory with it
}
