// Package fairqueue is the work queue of a controller whose objects belong to
// tenants that must not slow one another down.
//
// It shares the workers out by namespace: one that brings ten thousand objects
// waits behind itself. Within a namespace new and changed objects come before
// resyncs. And a pass that waits for an answer from outside does not hold a worker:
// it gives its own back for the time of the call (Yield), as a goroutine in a
// system call gives its processor to others.
package fairqueue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are what a Queue is made of.
type Options struct {
	// Name is the controller's, as in metrics.
	Name string
	// Workers is how many passes may be at work at once, without those that wait
	// for the outside. One namespace gets at most as many as it leaves free for
	// others. The controller needs more goroutines than that: as many more as
	// may wait at once.
	Workers int
	// RateLimiter says how long an object waits after a pass that has failed.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Clock tells the time; nil means the real one.
	Clock clock.WithTicker
	// Backlogs tells of the queue in metrics; nil for none.
	Backlogs *Backlogs
}

// Queue is a controller's queue: client-go's, with an order of its own. A priority
// of 0 or more is for what is new or has changed, one below for resyncs.
type Queue struct {
	workqueue.TypedInterface[reconcile.Request]
	order   *order
	delays  workqueue.TypedDelayingInterface[reconcile.Request]
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	mu       sync.Mutex
	priority map[reconcile.Request]int // of the adds that wait for their time
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*Queue)(nil)

// New makes a Queue.
func New(o Options) *Queue {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	order := newOrder(o.Workers, o.Clock)
	q := &Queue{order: order, limiter: o.RateLimiter, priority: map[reconcile.Request]int{}}
	q.TypedInterface = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: o.Name, Clock: o.Clock, Queue: order})
	q.delays = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: o.Name, Clock: o.Clock, Queue: timed{q.TypedInterface, q},
	})
	o.Backlogs.add(o.Name, order)
	return q
}

// timed is where the queue of delays adds what has come of its time.
type timed struct {
	workqueue.TypedInterface[reconcile.Request]
	queue *Queue
}

// Add asks for a pass because its time has come.
func (t timed) Add(request reconcile.Request) {
	t.queue.mu.Lock()
	priority := t.queue.priority[request]
	delete(t.queue.priority, request)
	t.queue.mu.Unlock()
	t.queue.add(request, wish{priority: priority})
}

func (q *Queue) add(request reconcile.Request, w wish) {
	q.order.want(request, w)
	q.TypedInterface.Add(request)
}

// Add asks for a pass now.
func (q *Queue) Add(request reconcile.Request) { q.add(request, wish{event: true}) }

// AddAfter asks for a pass after a time.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.addAfter(request, after, 0)
}

// AddRateLimited asks for a pass when the rate limiter says.
func (q *Queue) AddRateLimited(request reconcile.Request) {
	q.addAfter(request, q.limiter.When(request), 0)
}

// AddWithOpts asks for passes.
func (q *Queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	for _, request := range requests {
		switch {
		case o.RateLimited:
			q.addAfter(request, max(o.After, q.limiter.When(request)), priority)
		case o.After > 0:
			q.addAfter(request, o.After, priority)
		default:
			q.add(request, wish{priority: priority, event: true})
		}
	}
}

func (q *Queue) addAfter(request reconcile.Request, after time.Duration, priority int) {
	q.mu.Lock()
	if known, ok := q.priority[request]; !ok || known < priority {
		q.priority[request] = priority
	}
	q.mu.Unlock()
	q.delays.AddAfter(request, after)
}

// Forget tells the rate limiter that a pass did not fail.
func (q *Queue) Forget(request reconcile.Request) { q.limiter.Forget(request) }

// NumRequeues is how often in a row a pass over the object has failed.
func (q *Queue) NumRequeues(request reconcile.Request) int { return q.limiter.NumRequeues(request) }

// Get is the next object to work on; it waits for one.
func (q *Queue) Get() (request reconcile.Request, shutdown bool) {
	q.order.turn()
	return q.TypedInterface.Get()
}

// GetWithPriority is Get, with the priority that the pass was asked for with.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	request, shutdown = q.Get()
	return request, q.order.priorityOf(request), shutdown
}

// Done ends a pass. If another was asked for meanwhile, it is due now.
func (q *Queue) Done(request reconcile.Request) {
	q.order.end(request)
	q.TypedInterface.Done(request)
}

// Yield gives the worker of the pass over an object back, as it waits for the
// outside. resume waits until there is a worker for it again; the pass must call
// it before it goes on. Without such a pass, or with one that waits already,
// both do nothing.
func (q *Queue) Yield(request reconcile.Request) (resume func()) { return q.order.yield(request) }

// Event tells whether anything but a time that has come has asked for the pass
// over an object that is under way.
func (q *Queue) Event(request reconcile.Request) bool { return q.order.event(request) }

// ShutDown ends the queue: nothing more is handed out, and passes that wait for a
// worker go on.
func (q *Queue) ShutDown() {
	q.order.close()
	q.delays.ShutDown() // and with it the queue itself
}

// ShutDownWithDrain is ShutDown, and waits for the passes under way.
func (q *Queue) ShutDownWithDrain() {
	q.order.close()
	q.TypedInterface.ShutDownWithDrain()
	q.delays.ShutDown()
}
