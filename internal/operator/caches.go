package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"avalonhosting.example/bucketoperator/internal/engine"
)

// CacheOptions are those of the manager's cache, which holds whole objects.
// Empty namespaces mean all.
func CacheOptions(definitions []Definition, namespaces []string) cache.Options {
	options := cacheOptions(namespaces, cache.TransformStripManagedFields())
	options.ByObject = map[client.Object]cache.ByObject{}
	for _, c := range wholes(definitions) {
		by := cache.ByObject{}
		if c.Select == Own {
			by.Label = labels.SelectorFromSet(labels.Set{engine.Label: engine.LabelValue})
		}
		if c.Transform != nil {
			by.Transform = c.Transform
		}
		options.ByObject[c.Object] = by
	}
	return options
}

// wholes is what the definitions hold whole, each type once. Where one group
// wants all objects of a type and another its own, there are all.
func wholes(definitions []Definition) map[reflect.Type]Cached {
	merged := map[reflect.Type]Cached{}
	for _, d := range definitions {
		for _, c := range d.held() {
			if c.Select == Metadata {
				continue
			}
			object := reflect.TypeOf(c.Object)
			if before, is := merged[object]; is {
				if before.Select == All {
					c.Select = All
				}
				if c.Transform == nil {
					c.Transform = before.Transform
				}
			}
			merged[object] = c
		}
	}
	return merged
}

func cacheOptions(namespaces []string, transform toolscache.TransformFunc) cache.Options {
	options := cache.Options{DefaultTransform: transform}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// caches are the manager's cache and that of metadata.
type caches struct {
	objects  cache.Cache
	metadata cache.Cache
	scheme   *runtime.Scheme
	// own are the types whose objects are held as metadata, less those with the
	// operator's label, which the manager's cache holds whole: an object is held once.
	own map[schema.GroupVersionKind]bool
	// finalizers are those that the operator puts on objects held as metadata.
	finalizers []string
}

func newCaches(mgr ctrl.Manager, definitions []Definition, namespaces []string) (*caches, error) {
	c := &caches{objects: mgr.GetCache(), scheme: mgr.GetScheme(), own: map[schema.GroupVersionKind]bool{}}
	for _, whole := range wholes(definitions) {
		gvk, err := apiutil.GVKForObject(whole.Object, c.scheme)
		if err != nil {
			return nil, fmt.Errorf("looking up the kind of %T: %w", whole.Object, err)
		}
		c.own[gvk] = whole.Select == Own
	}
	options := cacheOptions(namespaces, c.bare)
	options.Scheme, options.Mapper, options.HTTPClient = c.scheme, mgr.GetRESTMapper(), mgr.GetHTTPClient()
	options.ByObject = map[client.Object]cache.ByObject{}
	for gvk, object := range metadataOf(definitions) {
		if c.own[gvk] {
			options.ByObject[object] = cache.ByObject{Label: othersOnly()}
		}
	}
	c.finalizers = finalizers(definitions)
	var err error
	if c.metadata, err = cache.New(mgr.GetConfig(), options); err != nil {
		return nil, fmt.Errorf("making the cache of metadata: %w", err)
	}
	if err := mgr.Add(asCache{c.metadata}); err != nil {
		return nil, fmt.Errorf("adding the cache of metadata to the manager: %w", err)
	}
	return c, nil
}

// metadataOf is what the definitions hold as metadata, each kind once.
func metadataOf(definitions []Definition) map[schema.GroupVersionKind]client.Object {
	objects := map[schema.GroupVersionKind]client.Object{}
	for _, d := range definitions {
		for _, held := range d.Cached {
			if held.Select == Metadata {
				objects[held.Object.GetObjectKind().GroupVersionKind()] = held.Object
			}
		}
	}
	return objects
}

// finalizers are those that the definitions put on what they hold as metadata.
func finalizers(definitions []Definition) []string {
	var all []string
	for _, d := range definitions {
		for _, held := range d.Cached {
			if held.Finalizer != "" {
				all = append(all, held.Finalizer)
			}
		}
	}
	return all
}

// othersOnly selects what does not carry the operator's label.
func othersOnly() labels.Selector {
	requirement, err := labels.NewRequirement(engine.Label, selection.NotEquals, []string{engine.LabelValue})
	if err != nil {
		panic(err) // both are constants
	}
	return labels.NewSelector().Add(*requirement)
}

// asCache makes the manager treat a cache as one, in whatever mode: it is
// started before any controller, on a standby too, and stopped after them.
type asCache struct{ cache.Cache }

// GetCache is how the manager tells.
func (c asCache) GetCache() cache.Cache { return c.Cache }

// index adds an index, to both caches where both hold objects of the type.
func (c *caches) index(ctx context.Context, i Index) error {
	indexers := map[client.Object]client.FieldIndexer{i.Object: c.objects}
	if gvk, is := metadataKind(i.Object); is {
		indexers[i.Object] = c.metadata
		if c.own[gvk] {
			own, err := c.newObject(gvk)
			if err != nil {
				return err
			}
			indexers[own] = c.objects
		}
	}
	for object, indexer := range indexers {
		if err := indexer.IndexField(ctx, object, i.Field, i.Values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", object, i.Field, err)
		}
	}
	return nil
}

// fill returns once all that the definitions hold in memory was read once.
func (c *caches) fill(ctx context.Context, definitions []Definition) error {
	for _, d := range definitions {
		for _, held := range d.held() {
			from := c.objects
			if held.Select == Metadata {
				from = c.metadata
			}
			if _, err := from.GetInformer(ctx, held.Object); err != nil {
				return fmt.Errorf("filling the cache of %T: %w", held.Object, err)
			}
		}
	}
	return nil
}

func (c *caches) newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	made, err := c.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("making an empty %s: %w", gvk.Kind, err)
	}
	object, ok := made.(client.Object)
	if !ok {
		return nil, errors.New(gvk.Kind + " is no object")
	}
	return object, nil
}
