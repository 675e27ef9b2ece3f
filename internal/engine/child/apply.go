package child

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
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
// as the cache or the API server has it, for the step to observe. There is no
// request when neither an intent nor a field that it sets has changed. The child
// is never deleted: a change of a field that cannot be changed is refused, and
// told. An intent that is left out is given up: its fields keep their values
// until somebody else sets them.
//
// The live object must come from a cache that keeps the managed fields of the
// intents' managers, see KeepManagedFields.
func Apply[C client.Object](ctx context.Context, p *engine.Pass, child Applied[C]) (C, error) {
	seen := sighting[C]{object: newOf[C]()}
	gvk, err := apiutil.GVKForObject(seen.object, p.Scheme())
	if err != nil {
		return seen.object, fmt.Errorf("looking up the kind of a child: %w", err)
	}
	err = p.Client().Get(ctx, child.key(p), seen.object)
	if client.IgnoreNotFound(err) != nil {
		return seen.object, failure(gvk.Kind, child.Name, err)
	}
	seen.exists = err == nil
	for i, intent := range child.Intents {
		fields, err := child.fields(p, gvk, intent, i == 0)
		if err != nil {
			return seen.object, err
		}
		seen, err = child.apply(ctx, p, gvk, intent, fields, seen)
		if err != nil {
			return seen.object, err
		}
	}
	return seen.object, nil
}

// sighting is a child as it was last seen.
type sighting[C client.Object] struct {
	object C
	exists bool
	live   bool // by the API server, not the cache
}

// apply applies one intent, if that is needed.
func (c Applied[C]) apply(
	ctx context.Context, p *engine.Pass, gvk schema.GroupVersionKind, intent Intent[C], fields *unstructured.Unstructured, seen sighting[C],
) (sighting[C], error) {
	if !seen.exists {
		logf.FromContext(ctx).V(1).Info("Creating an owned object", gvk.Kind, c.Name)
		made, err := c.create(ctx, p, intent, fields)
		if !apierrors.IsConflict(err) {
			return made, failure(gvk.Kind, c.Name, err)
		}
	} else if standing, err := c.claim(p, gvk, seen.object); err == nil && standing == owned && intent.holds(seen.object, fields) {
		return seen, nil
	}
	// What the cache says is not enough to write, or to complain, on.
	if !seen.live {
		seen = sighting[C]{object: newOf[C](), exists: true, live: true}
		if err := p.Live().Get(ctx, c.key(p), seen.object); err != nil {
			return seen, failure(gvk.Kind, c.Name, err)
		}
	}
	standing, err := c.claim(p, gvk, seen.object)
	if err != nil || standing == owned && intent.holds(seen.object, fields) {
		return seen, err
	}
	fields.SetUID(seen.object.GetUID()) // not to a successor of the same name
	logf.FromContext(ctx).Info("Applying an owned object", gvk.Kind, c.Name)
	applied, err := c.send(ctx, p, intent, fields, client.ForceOwnership)
	return applied, failure(gvk.Kind, c.Name, err)
}

// create applies the fields to an object that does not exist, and meets a
// conflict if it does. Without a version an apply to somebody else's object would
// merge what does not contradict it into it, an owner reference for one.
func (c Applied[C]) create(
	ctx context.Context, p *engine.Pass, intent Intent[C], fields *unstructured.Unstructured,
) (sighting[C], error) {
	fields = fields.DeepCopy()
	fields.SetResourceVersion(neverAVersion)
	return c.send(ctx, p, intent, fields)
}

// neverAVersion is a resourceVersion that no object has: etcd's first revision
// is an empty store's. The API server compares it if the object exists.
const neverAVersion = "1"

// send applies the fields and returns the object as it is then.
func (c Applied[C]) send(
	ctx context.Context, p *engine.Pass, intent Intent[C], fields *unstructured.Unstructured, options ...client.ApplyOption,
) (sighting[C], error) {
	answer := sighting[C]{object: newOf[C](), exists: true, live: true}
	sent := fields.DeepCopy()
	err := p.Client().Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), append(options, client.FieldOwner(intent.manager()))...)
	if err != nil {
		return answer, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(sent.Object, answer.object); err != nil {
		return answer, fmt.Errorf("reading the answer to an apply: %w", err)
	}
	return answer, nil
}

func (c Applied[C]) key(p *engine.Pass) client.ObjectKey {
	return client.ObjectKey{Namespace: p.Object().GetNamespace(), Name: c.Name}
}

func (c Applied[C]) claim(p *engine.Pass, gvk schema.GroupVersionKind, live C) (ownership, error) {
	return claim(p, gvk.Kind, live, c.Identifies != nil && c.Identifies(live), c.Conflict)
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
		if err := prepare(p, u, gvk, c.Metadata); err != nil {
			return nil, err
		}
	}
	return u, intent.sign(u)
}

// signaturePrefix begins the name of the annotation that holds the digest of
// what an intent was when it was last applied; its manager's name ends it.
const signaturePrefix = "bucketoperator.avalonhosting.example/applied-by-"

// sign adds the digest of the fields to them. A live object cannot tell what was
// asked for: the API server fills in defaults, and writes values its own way.
func (i Intent[C]) sign(fields *unstructured.Unstructured) error {
	if len(withoutIdentity(fields.Object)) == 0 {
		return nil // nothing is wanted, not even a signature
	}
	raw, err := json.Marshal(fields.Object)
	if err != nil {
		return fmt.Errorf("encoding an apply configuration: %w", err)
	}
	sum := sha256.Sum256(raw)
	annotations := fields.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[signaturePrefix+i.manager()] = hex.EncodeToString(sum[:16])
	fields.SetAnnotations(annotations)
	return nil
}

// holds tells whether the manager owns all fields of the intent in the live
// object, the signature of just these fields among them. When somebody changes a
// field that the manager owns, the API server takes the ownership from it.
func (i Intent[C]) holds(live C, fields *unstructured.Unstructured) bool {
	extracted, err := i.Extract(live, i.manager())
	if err != nil {
		return false // others have made it what the kind's schema cannot tell apart
	}
	have, err := asMap(extracted)
	if err != nil {
		return false
	}
	have, want := withoutIdentity(have), withoutIdentity(fields.Object)
	if len(want) == 0 {
		return len(have) == 0
	}
	return covers(have, want, ownedBy(i.manager(), live))
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

// covers tells whether have, extracted by what is owned, is want, and perhaps the
// defaults that the API server has filled in. It writes quantities in a form of
// its own, and leaves empty values out: of these, only ownership tells.
func covers(have, want any, owned ownedFields) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		return ok && coversFields(have, want, owned)
	case []any:
		have, ok := have.([]any)
		return ok && coversItems(have, want, owned)
	}
	return reflect.DeepEqual(have, want) || sameQuantity(have, want)
}

func coversFields(have, want map[string]any, owned ownedFields) bool {
	for key := range want {
		inner, isOwned := owned.field(key)
		if value, ok := have[key]; ok {
			if !covers(value, want[key], inner) {
				return false
			}
		} else if !isOwned || !isEmpty(want[key]) {
			return false
		}
	}
	return true
}

func coversItems(have, want []any, owned ownedFields) bool {
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if !covers(have[i], want[i], owned.item(want[i])) {
			return false
		}
	}
	return true
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return reflect.ValueOf(value).IsZero()
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
			object.SetManagedFields(managedFieldsOf(managers, object.GetManagedFields()))
		}
		return in, nil
	}
}
