package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errWentBack tells that the cluster's data is older than what was seen of it
// before. The caches may hold what is not so any more, and nothing corrects them:
// they take no event below the revision that they are at.
var errWentBack = errors.New("the data of the API server went back in time, as when etcd is restored from a snapshot")

// revision is the greatest revision of the cluster's data that was seen. That of
// one etcd only grows, unless it is restored from a snapshot. Then this process
// must end: what it holds in memory is ahead of the server.
type revision struct {
	wentBack chan struct{} // closed once that was seen

	mu       sync.Mutex
	greatest string
	err      error
}

func newRevision() *revision { return &revision{wentBack: make(chan struct{})} }

// see compares the resourceVersion of what was just read or written with those of
// before: it was answered after them, so it must not be less. From the first that
// is less on, it always fails.
func (r *revision) see(what, resourceVersion string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	if r.greatest == "" {
		r.greatest = resourceVersion
	}
	switch order, err := resourceversion.CompareResourceVersion(resourceVersion, r.greatest); {
	case err != nil:
		return nil // this server counts otherwise: nothing can be told
	case order > 0:
		r.greatest = resourceVersion
	case order < 0:
		r.err = fmt.Errorf("%w: %s has resourceVersion %s, and there was %s before; this process ends, as its caches are ahead, and the next one reads all anew",
			errWentBack, what, resourceVersion, r.greatest)
		close(r.wentBack)
	}
	return r.err
}

// NeedLeaderElection is false: a standby that led with such caches would do
// nothing, in silence.
func (r *revision) NeedLeaderElection() bool { return false }

// Start ends the manager once the data went back.
func (r *revision) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-r.wentBack:
		return r.see("", "")
	}
}

// watchedLeases are leases whose resourceVersions are seen: each replica reads or
// writes its lease every second anyway. Leader election alone calls them, one call
// after the other.
type watchedLeases struct {
	coordinationv1client.LeasesGetter
	lease *lease
}

// Leases are those of a namespace.
func (w watchedLeases) Leases(namespace string) coordinationv1client.LeaseInterface {
	return watchedLease{LeaseInterface: w.LeasesGetter.Leases(namespace), lease: w.lease}
}

type watchedLease struct {
	coordinationv1client.LeaseInterface
	lease *lease
}

func (w watchedLease) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	got, err := w.LeaseInterface.Get(ctx, name, options)
	return w.see(got, err)
}

func (w watchedLease) Create(ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions) (*coordinationv1.Lease, error) {
	got, err := w.LeaseInterface.Create(ctx, lease, options)
	return w.see(got, err)
}

func (w watchedLease) Update(ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	got, err := w.LeaseInterface.Update(ctx, lease, options)
	return w.see(got, err)
}

// see fails when the data went back. Then the lease is no more this process's, nor
// will it be: the fence shuts, also that of a standby, and nobody leads with
// these caches.
func (w watchedLease) see(got *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	if err := w.lease.revision.see("lease "+leaseName, got.ResourceVersion); err != nil {
		w.lease.ended.Store(true)
		return nil, err
	}
	return got, nil
}

// revisionInterval is how often a process without a lease asks for the revision.
const revisionInterval = time.Minute

// revisionWatch asks for the revision where there is no lease to tell it: it lists
// one object of a kind.
type revisionWatch struct {
	*revision
	live      client.Reader
	kind      schema.GroupVersionKind
	namespace string // empty means all
	clock     clock.WithTicker
}

// Start asks until ctx ends, or the data went back, which ends the manager.
func (w *revisionWatch) Start(ctx context.Context) error {
	ticker := w.clock.NewTicker(revisionInterval)
	defer ticker.Stop()
	for {
		if err := w.ask(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (w *revisionWatch) ask(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(w.kind)
	if err := w.live.List(ctx, list, client.Limit(1), client.InNamespace(w.namespace)); err != nil {
		ctrl.Log.V(1).Info("Not asking for the revision of the cluster's data", "error", err.Error())
		return nil
	}
	return w.see("the list of "+w.kind.Kind+"s", list.ResourceVersion)
}
