package child

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
)

// cacheLag is how long the cache gets to hear of a child that has changed.
const cacheLag = 100 * time.Millisecond

// Child is a small object that the pass's object owns alone.
type Child[C client.Object] struct {
	// Want is the whole object as it is created. Ensure adds the owner
	// reference, the operator's label and Metadata.
	Want C
	// Same tells whether a live object is as wanted in all that is owned. The
	// object may come from a cache, without what Compact drops.
	Same func(live C) bool
	// Correct makes a live object as wanted in all that is owned, and leaves
	// the rest as it is.
	Correct func(live C)
	// Identifies tells whether a live object that has lost its owner, but carries
	// the operator's label, is this object's: then it is adopted. nil means never.
	Identifies func(live C) bool
	// Conflict is the reason of the condition when somebody else's object has the name.
	Conflict string
	// Remake is true where it harms nobody to delete the object and make it
	// anew, which Ensure does when a field that cannot be changed back was changed.
	Remake bool
	// Metadata is what a user wants on the object.
	Metadata Metadata
}

// Ensure makes sure that the child exists as wanted. A missing one is created, one
// that differs is updated, both with plain writes: these cost the API server
// least, and unlike an apply can take away what a stranger has added, such as
// a selector.
func Ensure[C client.Object](ctx context.Context, p *engine.Pass, child Child[C]) error {
	want := child.Want
	gvk, err := apiutil.GVKForObject(want, p.Scheme())
	if err != nil {
		return fmt.Errorf("looking up the kind of a child: %w", err)
	}
	if err := prepare(p, want, gvk, child.Metadata); err != nil {
		return err
	}
	live := newOf[C]()
	err = p.Client().Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		logf.FromContext(ctx).V(1).Info("Creating an owned object", gvk.Kind, want.GetName())
		err = p.Client().Create(ctx, want, client.FieldOwner(engine.FieldManager))
		if !apierrors.IsAlreadyExists(err) {
			return failure(gvk.Kind, want.GetName(), err)
		}
		return child.correct(ctx, p, gvk, live)
	}
	if err != nil {
		return failure(gvk.Kind, want.GetName(), err)
	}
	if standing, err := child.claim(p, gvk, live); err == nil && standing == owned && child.same(live) {
		return nil
	}
	return child.correct(ctx, p, gvk, live)
}

// correct updates the object as the API server has it: the cache's may be out
// of date, and does not hold all of it. So may be what the cache says of the
// owner: an object that is in the way there may be gone by now.
func (c Child[C]) correct(ctx context.Context, p *engine.Pass, gvk schema.GroupVersionKind, live C) error {
	name := c.Want.GetName()
	if err := p.Live().Get(ctx, client.ObjectKeyFromObject(c.Want), live); err != nil {
		return failure(gvk.Kind, name, err)
	}
	standing, err := c.claim(p, gvk, live)
	if err != nil || standing == owned && c.same(live) {
		return err
	}
	if standing == adopting {
		if err := controllerutil.SetControllerReference(p.Object(), live, p.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
			return fmt.Errorf("adopting %s %s: %w", gvk.Kind, name, err)
		}
	}
	c.Correct(live)
	c.Metadata.correct(live, c.Want)
	logf.FromContext(ctx).Info("Correcting an owned object", gvk.Kind, name)
	err = p.Client().Update(ctx, live, client.FieldOwner(engine.FieldManager))
	if c.Remake && refusesField(err) {
		return c.remake(ctx, p, gvk, live)
	}
	return failure(gvk.Kind, name, err)
}

// remake deletes an object that cannot be corrected, once it is known that the
// one that is to take its place will be accepted. The next pass makes that one.
func (c Child[C]) remake(ctx context.Context, p *engine.Pass, gvk schema.GroupVersionKind, live C) error {
	name := c.Want.GetName()
	trial := c.Want.DeepCopyObject().(client.Object)
	trial.SetName("")
	trial.SetGenerateName(name + "-")
	if err := p.Client().Create(ctx, trial, client.DryRunAll, client.FieldOwner(engine.FieldManager)); err != nil {
		return failure(gvk.Kind, name, err)
	}
	logf.FromContext(ctx).Info("Deleting an owned object that cannot be corrected, to make it anew", gvk.Kind, name)
	if err := remove(ctx, p, live); err != nil {
		return err
	}
	return engine.InProgress(apimeta.ReasonChildTerminating, "%s %s could not be corrected and is made anew", gvk.Kind, name).After(cacheLag)
}

func (c Child[C]) claim(p *engine.Pass, gvk schema.GroupVersionKind, live C) (ownership, error) {
	return claim(p, gvk.Kind, live, c.Identifies != nil && c.Identifies(live), c.Conflict)
}

func (c Child[C]) same(live C) bool {
	return c.Same(live) && c.Metadata.same(live, c.Want)
}

// prepare puts on a child what every one carries.
func prepare(p *engine.Pass, want client.Object, gvk schema.GroupVersionKind, metadata Metadata) error {
	metadata.put(want)
	if err := controllerutil.SetControllerReference(p.Object(), want, p.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("owning %s %s: %w", gvk.Kind, want.GetName(), err)
	}
	return nil
}

// newOf is an empty object of the kind.
func newOf[C client.Object]() C { return reflect.New(reflect.TypeFor[C]().Elem()).Interface().(C) }
