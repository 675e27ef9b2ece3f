// Package operator makes a manager out of Definitions, one for each API group:
// its scheme, caches, indexes, metrics, checks and controllers.
package operator

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Definition is all that the operator has to know of one API group. A group is
// added by a value of this type, and a line in internal/controllers/definitions.go:
//
//	var Definition = operator.Definition{
//		Name:         "cache",
//		GroupVersion: cachev1.GroupVersion,
//		AddToScheme:  cachev1.AddToScheme,
//		Kinds:        []operator.Kind{{Object: &cachev1.Cache{}, List: &cachev1.CacheList{}}},
//		Cached:       []operator.Cached{{Object: &appsv1.StatefulSet{}, Select: operator.Own}},
//		SetUp:        setUp,
//	}
//
// What is generated follows from the types and their markers: see `make manifests`.
type Definition struct {
	// Name is what --controllers calls the group's controllers.
	Name string
	// GroupVersion is the group, with the version that the controllers read.
	GroupVersion schema.GroupVersion
	// AddToScheme adds the group's types to a scheme.
	AddToScheme func(*runtime.Scheme) error
	// Kinds are the group's kinds. All are reconciled: each needs a controller.
	Kinds []Kind
	// Cached is what else the controllers read by Setup.Client or
	// Setup.Metadata, or watch. Kinds of other groups belong here as well.
	Cached []Cached
	// Indexes are what objects are looked up by, with client.MatchingFields.
	Indexes []Index
	// SetUp adds the controllers to the manager.
	SetUp func(*Setup) error
}

// Kind is a kind that the operator reconciles. The cluster must serve it before
// the operator starts, a replica is ready once it has read all of its objects,
// and the metric bucketoperator_objects counts them.
type Kind struct {
	// Object is an empty object. It must implement engine.Object.
	Object client.Object
	// List is an empty list of such objects.
	List client.ObjectList
	// Transform takes away what no controller reads, before an object is held
	// in memory, such as engine.Traits.Compact. Nil keeps all but the managed fields.
	Transform toolscache.TransformFunc
}

// Cached is a type of objects that are held in memory.
type Cached struct {
	// Object is an empty object of the type.
	Object client.Object
	// Select says which of them are held, and what of each.
	Select Selection
	// Transform takes away what no controller reads, before an object is held
	// in memory: child.Compact, or child.KeepManagedFields for what is kept by
	// child.Apply. Nil keeps all but the managed fields. Controllers of all groups
	// see its result, so that one group at most may give one for a type. There
	// is none for Metadata, which is bare enough.
	Transform toolscache.TransformFunc
	// Finalizer is the one that the group puts on objects that it selects as
	// Metadata, if it does. It is held whatever other finalizers there are.
	Finalizer string
}

// Selection is which objects of a type are held in memory, and what of each.
type Selection int

const (
	// Own are whole objects that carry the operator's label: those that were
	// made by package child.
	Own Selection = iota
	// Metadata is a little of the metadata of everybody's objects, see
	// Setup.Metadata. What is in them is read when it is used, by Setup.Live.
	Metadata
	// All are whole objects, everybody's.
	All
)

// Index is what objects of a type are looked up by.
type Index struct {
	// Object is an empty object of the type: a *metav1.PartialObjectMetadata
	// with its kind set for what is selected as Metadata.
	Object client.Object
	// Field is the index's name, for client.MatchingFields. It need not be the
	// name of a field.
	Field string
	// Values are those that an object is found by.
	Values func(client.Object) []string
}

// Names are the names of the definitions.
func Names(definitions []Definition) []string {
	names := make([]string, 0, len(definitions))
	for _, d := range definitions {
		names = append(names, d.Name)
	}
	return names
}

// Named are the definitions with one of the names; all when there are no names.
func Named(definitions []Definition, names []string) []Definition {
	if len(names) == 0 {
		return definitions
	}
	return slices.DeleteFunc(slices.Clone(definitions), func(d Definition) bool { return !slices.Contains(names, d.Name) })
}

// NewScheme is the scheme of Kubernetes' own types and those of the definitions.
func NewScheme(definitions []Definition) *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	for _, d := range definitions {
		utilruntime.Must(d.AddToScheme(scheme))
	}
	return scheme
}

// KindNames are the names of the group's kinds, sorted.
func (d Definition) KindNames() []string {
	names := make([]string, 0, len(d.Kinds))
	for _, kind := range d.Kinds {
		names = append(names, kind.name())
	}
	slices.Sort(names)
	return names
}

// name is the kind's name: a scheme registers a type by its own name.
func (k Kind) name() string { return reflect.TypeOf(k.Object).Elem().Name() }

// Validate finds what cannot be right in the definitions: they are data, and a
// mistake in them is found at the start, not in a pass.
func Validate(definitions []Definition) error {
	transformed := map[reflect.Type]string{}
	for i, d := range definitions {
		if err := d.validate(); err != nil {
			return fmt.Errorf("definition %q: %w", d.Name, err)
		}
		for _, before := range definitions[:i] {
			if before.Name == d.Name || before.GroupVersion.Group == d.GroupVersion.Group {
				return fmt.Errorf("definitions %q and %q have the same name or group", before.Name, d.Name)
			}
		}
		for _, c := range d.held() {
			object := reflect.TypeOf(c.Object)
			if c.Transform == nil || c.Select == Metadata {
				continue
			}
			if before, is := transformed[object]; is {
				return fmt.Errorf("definitions %q and %q both transform %s", before, d.Name, object)
			}
			transformed[object] = d.Name
		}
	}
	return nil
}

func (d Definition) validate() error {
	switch {
	case d.Name == "" || d.GroupVersion.Empty() || d.AddToScheme == nil || d.SetUp == nil:
		return fmt.Errorf("it needs a Name, a GroupVersion, AddToScheme and SetUp")
	case len(d.Kinds) == 0:
		return fmt.Errorf("it has no Kinds")
	}
	scheme := NewScheme([]Definition{d})
	for _, kind := range d.Kinds {
		for object, name := range map[runtime.Object]string{kind.Object: kind.name(), kind.List: kind.name() + "List"} {
			kinds, _, err := scheme.ObjectKinds(object)
			if want := d.GroupVersion.WithKind(name); err != nil || !slices.Contains(kinds, want) {
				return fmt.Errorf("%T is not %s: it is of %v (%w)", object, want, kinds, err)
			}
		}
	}
	for _, c := range d.Cached {
		if c.Select != Metadata {
			continue
		}
		gvk, is := metadataKind(c.Object)
		switch {
		case !is:
			return fmt.Errorf("%T is selected as Metadata: it must be metadata with its kind set", c.Object)
		case c.Transform != nil:
			return fmt.Errorf("metadata of %s cannot be transformed", gvk.Kind)
		}
	}
	return nil
}

// held are the group's kinds and what else it holds in memory.
func (d Definition) held() []Cached {
	held := make([]Cached, 0, len(d.Kinds)+len(d.Cached))
	for _, kind := range d.Kinds {
		held = append(held, Cached{Object: kind.Object, Select: All, Transform: kind.Transform})
	}
	return append(held, d.Cached...)
}
