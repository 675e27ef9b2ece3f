package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager is the field manager of every write.
const FieldManager = "bucketoperator"

// maxConflicts is how often a write that met a conflict is tried again on the
// newest version, when that differs in nothing that matters here. Somebody who
// keeps changing the object's labels, say, must not keep the engine from its work.
const maxConflicts = 5

// writer makes the engine's writes to the object itself. Each carries the
// resourceVersion that the pass has read, so that nothing is written on the
// strength of what is no longer so.
type writer struct {
	client client.Client
	live   client.Reader
	traits Traits
}

// patchMetadata applies mutate to the object's metadata. A merge patch holds the
// whole list of finalizers, and a cache need not hold those of others.
func (w writer) patchMetadata(ctx context.Context, p *Pass, mutate func(client.Object)) error {
	base := p.base
	if len(p.foreignFinalizers()) > 0 {
		live, err := w.read(ctx, p)
		if err != nil {
			return err
		}
		base = live
	}
	return w.optimistically(ctx, p, base, func(base Object) (Object, error) {
		changed := copyOf(base)
		mutate(changed)
		return changed, w.client.Patch(ctx, changed, lockedMerge(base), client.FieldOwner(FieldManager))
	}, func(written Object) {
		adoptMetadata(p.obj, written)
		adoptMetadata(p.base, written)
	})
}

// writeStatus makes the object's status at the API server what it is in the
// pass, if it is not so already.
func (w writer) writeStatus(ctx context.Context, p *Pass) error {
	if equality.Semantic.DeepEqual(p.base, p.obj) {
		return nil
	}
	return w.optimistically(ctx, p, p.base, func(base Object) (Object, error) {
		changed := copyOf(p.obj)
		adoptMetadata(changed, base)
		return changed, w.client.Status().Patch(ctx, changed, lockedMerge(base), client.FieldOwner(FieldManager))
	}, func(written Object) {
		adoptMetadata(p.obj, written)
		p.base = copyOf(p.obj)
		p.persist = nil
	})
}

// optimistically runs attempt on base and, after a conflict, on the live object
// as long as that is the same in all that the pass has built on.
func (w writer) optimistically(ctx context.Context, p *Pass, base Object, attempt func(base Object) (Object, error), done func(written Object)) error {
	for try := 0; ; try++ {
		written, err := attempt(base)
		switch {
		case err == nil:
			done(written)
			return nil
		case apierrors.IsNotFound(err):
			return ErrStale
		case !apierrors.IsConflict(err):
			return fmt.Errorf("writing the object: %w", err)
		case try == maxConflicts:
			return ErrStale
		}
		live, err := w.read(ctx, p)
		if err != nil {
			return err
		}
		base = live
	}
}

// persistTimeout bounds how long a pass that may not go on, as the operator is
// told to stop, is given to write down what must not be lost.
const (
	persistTimeout = 5 * time.Second
	persistPause   = 100 * time.Millisecond
)

// persist writes what the pass has learned that must not be lost, see
// Pass.Persist, to the live object, whatever has become of that meanwhile.
func (w writer) persist(ctx context.Context, p *Pass) error {
	if p.persist == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), persistTimeout)
	defer cancel()
	patiently := wait.Backoff{Steps: int(persistTimeout / persistPause), Duration: persistPause, Factor: 1}
	return clientretry.OnError(patiently, func(error) bool { return ctx.Err() == nil }, func() error {
		live := copyOf(p.base)
		err := w.live.Get(ctx, client.ObjectKeyFromObject(p.base), live)
		if apierrors.IsNotFound(err) || err == nil && live.GetUID() != p.base.GetUID() {
			return nil
		}
		if err != nil {
			return err
		}
		changed := copyOf(live)
		if !p.persist(changed) {
			return nil
		}
		if err := w.client.Status().Patch(ctx, changed, lockedMerge(live), client.FieldOwner(FieldManager)); err != nil {
			return err
		}
		p.base.SetResourceVersion(changed.GetResourceVersion())
		return nil
	})
}

// confirm reads the live object and fails with ErrStale when it differs in
// anything that the pass has built on.
func (w writer) confirm(ctx context.Context, p *Pass) error {
	live, err := w.read(ctx, p)
	if err != nil {
		return err
	}
	adoptMetadata(p.obj, live)
	adoptMetadata(p.base, live)
	return nil
}

func (w writer) read(ctx context.Context, p *Pass) (Object, error) {
	live := copyOf(p.base)
	err := w.live.Get(ctx, client.ObjectKeyFromObject(p.base), live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, ErrStale
	case err != nil:
		return nil, fmt.Errorf("reading the object: %w", err)
	case !w.sameIntent(live, p.base):
		return nil, ErrStale
	}
	return live, nil
}

// sameIntent compares all that a pass builds on: everything but the metadata
// that belongs to others.
func (w writer) sameIntent(a, b Object) bool {
	return equality.Semantic.DeepEqual(w.intent(a), w.intent(b))
}

func (w writer) intent(obj Object) Object {
	c := copyOf(obj)
	c.SetResourceVersion("")
	c.SetManagedFields(nil)
	c.SetLabels(nil)
	c.SetOwnerReferences(nil)
	own := map[string]string{}
	for _, key := range w.traits.Annotations {
		if value, ok := c.GetAnnotations()[key]; ok {
			own[key] = CompactValue(value)
		}
	}
	c.SetAnnotations(own)
	c.SetFinalizers(slices.DeleteFunc(c.GetFinalizers(), func(f string) bool { return f != w.traits.Finalizer }))
	c.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // a typed client may or may not fill it in
	return c
}

func copyOf(obj Object) Object { return obj.DeepCopyObject().(Object) }

func lockedMerge(base Object) client.Patch {
	return client.MergeFromWithOptions(copyOf(base), client.MergeFromWithOptimisticLock{})
}

// adoptMetadata takes over what the API server has said of the metadata.
func adoptMetadata(to, from client.Object) {
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetGeneration(from.GetGeneration())
	to.SetFinalizers(from.GetFinalizers())
	to.SetAnnotations(from.GetAnnotations())
	to.SetLabels(from.GetLabels())
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetManagedFields(from.GetManagedFields())
}
