package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stubLeases are one lease, of whatever is done to it.
type stubLeases struct {
	coordinationv1client.LeasesGetter
	coordinationv1client.LeaseInterface
	version string
}

func (s *stubLeases) Leases(string) coordinationv1client.LeaseInterface { return s }

func (s *stubLeases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: s.version}}, nil
}

func (s *stubLeases) Create(ctx context.Context, _ *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return s.Get(ctx, "", metav1.GetOptions{})
}

func (s *stubLeases) Update(ctx context.Context, _ *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return s.Get(ctx, "", metav1.GetOptions{})
}

// stubbedLease is a lease of "me" on the stub.
func stubbedLease(stub *stubLeases) *lease {
	l := &lease{clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), deadline: 5 * time.Second, revision: newRevision()}
	l.Interface = &resourcelock.LeaseLock{
		Client:     watchedLeases{LeasesGetter: stub, lease: l},
		LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
	}
	return l
}

func TestAReplicaWhoseLeaseWentBackEndsAndNeverLeads(t *testing.T) {
	t.Parallel()
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	get := func(ctx context.Context, l *lease) error { _, _, err := l.Get(ctx); return err }
	update := func(ctx context.Context, l *lease) error { return l.Update(ctx, mine) }
	create := func(ctx context.Context, l *lease) error { return l.Create(ctx, mine) }
	for name, call := range map[string]func(context.Context, *lease) error{
		"a standby that reads it": get, "a leader that renews it": update, "one that makes it anew": create,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub := &stubLeases{version: "99"}
			l := stubbedLease(stub)
			for _, stub.version = range []string{"99", "100", "100", "1000"} {
				if err := errors.Join(get(t.Context(), l), call(t.Context(), l)); err != nil {
					t.Fatalf("at %s: %v", stub.version, err)
				}
			}
			if l.stale() {
				t.Fatal("the fence is shut while the revision grows")
			}
			stub.version = "999"
			if err := call(t.Context(), l); !errors.Is(err, errWentBack) || !strings.Contains(err.Error(), "999") {
				t.Errorf("the call ended with %v, want that the data went back to 999", err)
			}
			if !l.stale() {
				t.Error("the fence is open")
			}
			if err := l.fence(http.DefaultTransport).(fenced).lease.revision.Start(t.Context()); !errors.Is(err, errWentBack) {
				t.Errorf("the manager ends with %v", err)
			}
			// The server grows past what was seen: what is in the caches is wrong still.
			stub.version = "2000"
			if get(t.Context(), l) == nil || create(t.Context(), l) == nil || update(t.Context(), l) == nil {
				t.Error("it may lead")
			}
		})
	}
}

func TestARevisionThatIsNoNumberTellsNothing(t *testing.T) {
	t.Parallel()
	r := newRevision()
	for _, version := range []string{"b", "a", "", "7", "6"} {
		if err := r.see("it", version); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// versionedLists answers each list with the next version, or an error where that is empty.
type versionedLists struct {
	client.Reader
	versions chan string
}

func (l *versionedLists) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	select {
	case version := <-l.versions:
		if version == "" {
			return errors.New("no answer")
		}
		list.SetResourceVersion(version)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestWithoutALeaseTheRevisionIsAskedForAndEndsTheManager(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Unix(1, 0))
	lists := &versionedLists{versions: make(chan string)}
	watch := &revisionWatch{revision: newRevision(), live: lists, clock: clock, kind: schema.GroupVersionKind{Kind: "StorageBucket"}}
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(t.Context()) }()
	for i, version := range []string{"7", "", "12", "8"} {
		if i > 0 {
			clock.Step(revisionInterval)
		}
		select {
		case lists.versions <- version:
		case err := <-ended:
			t.Fatalf("it ended before %q: %v", version, err)
		}
	}
	if err := <-ended; !errors.Is(err, errWentBack) || !strings.Contains(err.Error(), "12") {
		t.Errorf("it ended with %v", err)
	}
}
