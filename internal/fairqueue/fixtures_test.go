package fairqueue

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newQueue(workers int) *Queue {
	return New(Options{
		Name: "subject", Workers: workers, Clock: clock.RealClock{}, Registerer: prometheus.NewRegistry(),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
	})
}

// request is one for an object in a namespace: "a/1".
func request(namespace string, name any) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(name)}}
}

func addLow(q *Queue, requests ...reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, requests...)
}

// take is what the queue hands out now. A test that takes what is not there
// waits for ever, and fails with the stacks.
func take(t *testing.T, q *Queue) reconcile.Request {
	t.Helper()
	r, shutdown := q.Get()
	if shutdown {
		t.Fatal("the queue has shut down")
	}
	return r
}

// takeAll takes everything, one pass after the other.
func takeAll(t *testing.T, q *Queue) []string {
	t.Helper()
	var got []string
	for q.Len() > 0 {
		r := take(t, q)
		got = append(got, r.String())
		q.Done(r)
	}
	return got
}

// ends tells, in a synctest bubble, when f has returned.
func ends(f func()) (ended func() bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// inside is what a queue holds.
type inside struct{ Slots, Running, InLine, Asked, Namespaces int }

func look(q *Queue) inside {
	q.mu.Lock()
	defer q.mu.Unlock()
	return inside{
		Slots: q.lines.active, Running: len(q.running), InLine: q.lines.depth,
		Asked: len(q.asked), Namespaces: len(q.lines.shares),
	}
}

// hasNext tells whether the queue would hand a request out.
func hasNext(q *Queue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, _ := q.lines.choose(true)
	return s != nil
}
