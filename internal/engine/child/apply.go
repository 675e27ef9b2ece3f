package child

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"avalonhosting.example/bucketoperator/internal/engine"
)

// Intent is the fields of a child that one field manager sets.
type Intent[C client.Object] struct {
	// Manager is the field manager; engine.FieldManager when empty. Two intents
	// for one child have two managers, so that one can be given up alone.
	Manager string
	// Fields are the fields, from the kind's apply configurations.
	Fields runtime.ApplyConfiguration
	// Extract is the function of the kind's apply configurations that reads from a
	// live object what a manager owns there, such as ExtractDeployment.
	Extract func(live C, manager string) (any, error)
}

// Applied is a child that others write to as well.
type Applied[C client.Object] struct {
	// Name is the child's, in the namespace of the pass's object.
	Name string
	// Intents are what is ours of it. The first creates the object, and carries
	// the owner reference, the operator's label and Metadata.
	Intents []Intent[C]
	// Identifies tells whether a live object that has lost its owner, but carries
	// the operator's label, is this object's: then it is adopted. nil means never.
	Identifies func(live C) bool
	// Conflict is the reason of the condition when somebody else's object has the name.
	Conflict string
	// Metadata is what a user wants on the object.
	Metadata Metadata
}

// Apply sets our fields of a child by server-side apply, and returns the child
// as the API server has it, for the step to observe. There is no request when
// the fields that we own are what they are to be: neither intent nor live object
// has changed. The child is never deleted: a change of a field that cannot be
// changed is refused, and told.
//
// The live object must come from a cache that keeps the managed fields of the
// intents' managers, see KeepManagedFields.
func Apply[C client.Object](ctx context.Context, p *engine.Pass, child Applied[C]) (C, error) {
	live := newOf[C]()
	none := live
	gvk, err := apiutil.GVKForObject(live, p.Scheme())
	if err != nil {
		return none, fmt.Errorf("looking up the kind of a child: %w", err)
	}
	key := client.ObjectKey{Namespace: p.Object().GetNamespace(), Name: child.Name}
	err = p.Client().Get(ctx, key, live)
	exists := err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return none, failure(gvk.Kind, child.Name, err)
	}
	for i, intent := range child.Intents {
		fields, err := child.fields(p, gvk, intent, i == 0)
		if err != nil {
			return none, err
		}
		live, err = child.apply(ctx, p, gvk, intent, fields, live, exists)
		if err != nil {
			return none, err
		}
		exists = true
	}
	return live, nil
}

// apply applies one intent, if that is needed.
func (c Applied[C]) apply(
	ctx context.Context, p *engine.Pass, gvk schema.GroupVersionKind, intent Intent[C], fields *unstructured.Unstructured, live C, exists bool,
) (C, error) {
	if !exists {
		// Without force: if somebody else has made an object of that name since the
		// cache was asked, the fields conflict, and nothing is touched.
		logf.FromContext(ctx).V(1).Info("Creating an owned object", gvk.Kind, c.Name)
		made, err := c.send(ctx, p, intent, fields, live)
		if !apierrors.IsConflict(err) {
			return made, failure(gvk.Kind, c.Name, err)
		}
		if err := p.Live().Get(ctx, client.ObjectKey{Namespace: fields.GetNamespace(), Name: c.Name}, live); err != nil {
			return live, failure(gvk.Kind, c.Name, err)
		}
	}
	standing, err := claim(p, gvk.Kind, live, c.Identifies != nil && c.Identifies(live), c.Conflict)
	if err != nil {
		return live, err
	}
	same, err := intent.holds(live, fields)
	if err != nil || same && standing == owned {
		return live, err
	}
	fields.SetUID(live.GetUID()) // not to a successor of the same name
	logf.FromContext(ctx).Info("Applying an owned object", gvk.Kind, c.Name)
	applied, err := c.send(ctx, p, intent, fields, live, client.ForceOwnership)
	return applied, failure(gvk.Kind, c.Name, err)
}

// send applies the fields and returns the object as it is then.
func (c Applied[C]) send(
	ctx context.Context, p *engine.Pass, intent Intent[C], fields *unstructured.Unstructured, like C, options ...client.ApplyOption,
) (C, error) {
	sent := fields.DeepCopy()
	err := p.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), append(options, client.FieldOwner(intent.manager()))...)
	if err != nil {
		return like, err
	}
	answer := like.DeepCopyObject().(C)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, answer); err != nil {
		return like, fmt.Errorf("reading the answer to an apply: %w", err)
	}
	return answer, nil
}

func (i Intent[C]) manager() string {
	if i.Manager != "" {
		return i.Manager
	}
	return engine.FieldManager
}

// fields are all fields of an intent, those that every child carries among them.
func (c Applied[C]) fields(p *engine.Pass, gvk schema.GroupVersionKind, intent Intent[C], first bool) (*unstructured.Unstructured, error) {
	object, err := asMap(intent.Fields)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(gvk)
	u.SetName(c.Name)
	u.SetNamespace(p.Object().GetNamespace())
	if first {
		return u, prepare(p, u, gvk, c.Metadata)
	}
	return u, nil
}

// holds tells whether the fields that the manager owns in the live object are
// those of the intent. When somebody changes a field that the manager owns, the
// API server takes the ownership from it.
func (i Intent[C]) holds(live C, fields *unstructured.Unstructured) (bool, error) {
	extracted, err := i.Extract(live, i.manager())
	if err != nil {
		return false, fmt.Errorf("reading what %s owns: %w", i.manager(), err)
	}
	have, err := asMap(extracted)
	if err != nil {
		return false, err
	}
	return sameFields("", withoutIdentity(have), withoutIdentity(fields.Object)), nil
}

// withoutIdentity drops what names the object: an extracted configuration has it
// whether or not anybody owns it.
func withoutIdentity(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "apiVersion")
	delete(object, "kind")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, field := range []string{"name", "namespace", "uid"} {
			delete(metadata, field)
		}
		object["metadata"] = metadata
		if len(metadata) == 0 {
			delete(object, "metadata")
		}
	}
	return object
}

func asMap(configuration any) (map[string]any, error) {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encoding an apply configuration: %w", err)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding an apply configuration: %w", err)
	}
	return object, nil
}

// quantityFields are the names of fields whose values are quantities, which the
// API server writes in a form of its own.
var quantityFields = []string{"limits", "requests", "capacity", "sizeLimit", "divisor", "averageValue"}

// sameFields compares fields, quantities by their value.
func sameFields(name string, have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok || len(have) != len(want) {
			return false
		}
		for key := range want {
			inner := key
			switch {
			case slices.Contains(quantityFields, name):
				inner = name
			case name == "target" && key == "value": // of an autoscaler's metric
				inner = "averageValue"
			}
			if value, ok := have[key]; !ok || !sameFields(inner, value, want[key]) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		return ok && slices.EqualFunc(have, want, func(a, b any) bool { return sameFields(name, a, b) })
	}
	return reflect.DeepEqual(have, want) || slices.Contains(quantityFields, name) && sameQuantity(have, want)
}

func sameQuantity(have, want any) bool {
	a, err := resource.ParseQuantity(fmt.Sprint(have))
	if err != nil {
		return false
	}
	b, err := resource.ParseQuantity(fmt.Sprint(want))
	return err == nil && a.Cmp(b) == 0
}

// KeepManagedFields is a transform for caches of children that Apply keeps: of
// the managed fields it leaves those of the given managers, engine.FieldManager
// when none is given.
func KeepManagedFields(managers ...string) func(any) (any, error) {
	if len(managers) == 0 {
		managers = []string{engine.FieldManager}
	}
	return func(in any) (any, error) {
		if object, ok := in.(client.Object); ok {
			object.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
				return f.Operation != metav1.ManagedFieldsOperationApply || !slices.Contains(managers, f.Manager)
			}))
		}
		return in, nil
	}
}
