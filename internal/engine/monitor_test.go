package engine_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"avalonhosting.example/bucketoperator/internal/engine"
)

func TestAMonitorWakesItsObjectAndEndsWithIt(t *testing.T) {
	t.Parallel()
	queue := &stubQueue{event: true, woken: make(chan reconcile.Request, 10)}
	started, ended, stir := make(chan string, 10), make(chan string, 10), make(chan struct{})
	key := "one"
	a := newArena(t, kind{steps: func(pass *engine.Pass, _ object) []engine.Step {
		if watched := key; watched != "" {
			pass.Monitor(watched, func(ctx context.Context, wake func()) {
				started <- watched
				defer func() { ended <- watched }()
				for {
					select {
					case <-ctx.Done():
						return
					case <-stir:
						wake()
					}
				}
			})
		}
		return []engine.Step{does(nil)}
	}}, nil)
	a.reconciler.SetQueue(queue)

	_, _ = a.pass() // a standby, or before leadership: nothing runs yet
	select {
	case <-started:
		t.Fatal("a monitor runs although this process does not lead")
	default:
	}
	leading, resign := context.WithCancel(t.Context())
	resigned := make(chan error)
	go func() { resigned <- a.reconciler.Monitors().Start(leading) }()
	wantNext(t, started, "one")

	stir <- struct{}{}
	if got := <-queue.woken; got.NamespacedName != a.key {
		t.Errorf("the monitor woke %v, want %v", got, a.key)
	}
	_, _ = a.pass() // the same key: the same monitor
	key = "two"
	_, _ = a.pass()
	wantNext(t, ended, "one")
	wantNext(t, started, "two")
	key = ""
	_, _ = a.pass()
	wantNext(t, ended, "two")

	key = "three"
	_, _ = a.pass()
	wantNext(t, started, "three")
	if err := a.client.Delete(t.Context(), a.object()); err != nil {
		t.Fatal(err)
	}
	_, _ = a.pass()
	if err := a.client.Get(t.Context(), a.key, kind{}.New()); !apierrors.IsNotFound(err) {
		t.Fatalf("the object is still there: %v", err)
	}
	wantNext(t, ended, "three")
	resign()
	if err := <-resigned; err != nil {
		t.Error(err)
	}
}

func TestAMonitorEndsWithTheLeadershipAndOneThatPanicsIsStartedAgain(t *testing.T) {
	t.Parallel()
	started, ended := make(chan string, 10), make(chan string, 1)
	runs := 0
	a := newArena(t, kind{steps: func(pass *engine.Pass, _ object) []engine.Step {
		pass.Monitor("key", func(ctx context.Context, _ func()) {
			runs++
			started <- "run"
			if runs == 1 {
				panic("one object's trouble")
			}
			<-ctx.Done()
			ended <- "run"
		})
		return []engine.Step{does(nil)}
	}}, nil)
	leading, resign := context.WithCancel(t.Context())
	resigned := make(chan error)
	go func() { resigned <- a.reconciler.Monitors().Start(leading) }()
	_, _ = a.pass()
	wantNext(t, started, "run")
	wantNext(t, started, "run")
	resign()
	wantNext(t, ended, "run")
	if err := <-resigned; err != nil {
		t.Error(err)
	}
}

func wantNext(t *testing.T, from <-chan string, want string) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-t.Context().Done():
	}
}
