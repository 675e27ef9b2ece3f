package fairqueue

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// A controller of controller-runtime works on the queue: passes that yield, that
// panic while they wait outside, that ask for a time, and that end at shutdown.
func TestAControllerWorksOnTheQueue(t *testing.T) {
	t.Parallel()
	const name, workers, slow = "controller-on-fairqueue", 1, 5
	var q *Queue
	answer := make(chan struct{})
	passes := make(chan string, 100)
	reconciler := reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		kind := "timer"
		if q.Event(r) {
			kind = "event"
		}
		passes <- r.String() + " " + kind
		switch {
		case r.Namespace == "slow":
			resume := q.Yield(r)
			<-answer
			if r.Name == "0" {
				panic("while it waits outside")
			}
			resume()
			passes <- r.String() + " resumed"
		case kind == "event":
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		}
		return reconcile.Result{}, nil
	})
	c, err := controller.NewTypedUnmanaged(name, controller.TypedOptions[reconcile.Request]{
		MaxConcurrentReconciles: workers + slow,
		SkipNameValidation:      new(true),
		RecoverPanic:            new(true),
		Reconciler:              reconciler,
		LogConstructor:          func(*reconcile.Request) logr.Logger { return logr.Discard() },
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			q = New(Options{
				Name: name, Workers: workers, RateLimiter: limiter, Clock: clock.RealClock{}, Registerer: ctrlmetrics.Registry,
			})
			return q
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for i := range slow {
			q.Add(request("slow", i))
		}
		q.Add(request("good", 1))
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	// seen waits until as many passes were told of.
	seen := func(n int) map[string]bool {
		told := map[string]bool{}
		for range n {
			told[<-passes] = true
		}
		return told
	}
	first := seen(slow + 2)
	if !first["good/1 event"] || !first["good/1 timer"] {
		t.Errorf("good was not served beside passes that wait: %v", first)
	}
	close(answer)
	if resumed := seen(slow - 1); !resumed["slow/4 resumed"] {
		t.Errorf("after the answer: %v", resumed)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left := look(q); left.Slots != 0 || left.Running != 0 || !q.ShuttingDown() {
		t.Errorf("at the end there is %+v", left)
	}
}
