// Package fairqueue is the work queue of a controller whose objects belong to
// tenants that distrust each other: no tenant's objects, however many, slow or
// dead, take from another's share of the workers.
//
// # Who is next
//
// The namespace that has the fewest passes at work, and among equals the one
// that was served longest ago. How much a namespace has waiting plays no part:
// one with a single request comes up as soon as one with a million.
//
// In a namespace, passes that had waited for the outside go first, then what is
// new or has changed (priority 0 and above), then the initial list and resyncs
// (below 0; [handler.LowPriority]), each first in, first out. Between
// namespaces, too, low priority waits while any other work does, except that
// one hand-out in eight is of low priority while there is some, from one
// namespace with low priority after the other. So a request of low priority
// that is the first of its namespace waits for at most eight hand-outs for each
// namespace that has low priority waiting.
//
// # Slots
//
// A pass at work holds one of Options.Workers slots, and none is handed out
// without. A namespace gets a further one only while three times those that its
// passes hold are fewer than the free ones: one alone has a quarter, so that
// whoever comes next finds some free. Turns of low priority are outside that
// bound. With [Queue.Yield] a pass gives its slot back while it waits for the
// outside. The controller must run more goroutines than there are slots: one
// more for each pass that may wait at a time. If it does not, passes that wait
// hold up the rest after all.
//
// # One entry for each request
//
// As in controller-runtime's priority queue, a request is in the queue at most
// once, with the highest priority and the earliest time that were asked for: a
// delayed request that is added without delay is due now, and no longer later.
// Whatever is asked for while a pass over the request runs waits for its end.
package fairqueue

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are what a Queue needs.
type Options struct {
	// Name is the controller's, for metrics.
	Name string
	// Workers is how many passes are at work at once.
	Workers int
	// RateLimiter says how long a rate limited request is delayed.
	RateLimiter workqueue.TypedRateLimiter[reconcile.Request]
	// Clock is what time is taken from.
	Clock clock.WithDelayedExecution
	// Registerer holds the metrics workqueue_*, shared with the queues of
	// other controllers: controller-runtime's metrics.Registry.
	Registerer prometheus.Registerer
}

// Queue is a work queue that is fair to namespaces. It starts no goroutines.
type Queue struct {
	name    string
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	clock   clock.WithDelayedExecution
	metrics metrics

	mu       sync.Mutex
	lines    *lines
	asked    map[reconcile.Request]*pass // delayed, in line, or held until the pass that runs has ended
	running  map[reconcile.Request]*pass // handed out
	takers   []chan<- *pass              // calls of Get that wait
	delayed  *order[*pass]
	alarm    clock.Timer
	alarmAt  time.Time // zero while there is none
	watching bool      // unfinished work is measured
	stopping bool
	draining bool
	idle     sync.Cond // signals that no pass is handed out, or that draining was called off
}

var (
	_ priorityqueue.PriorityQueue[reconcile.Request] = (*Queue)(nil)
	_ prometheus.Collector                           = (*Queue)(nil)
)

// New makes a Queue. It panics if the metrics cannot be registered, as
// prometheus.MustRegister does.
func New(o Options) *Queue {
	q := &Queue{
		name: o.Name, limiter: o.RateLimiter, clock: o.Clock,
		metrics: newMetrics(o.Registerer, o.Name),
		lines:   newLines(max(o.Workers, 1)),
		asked:   map[reconcile.Request]*pass{}, running: map[reconcile.Request]*pass{},
		delayed: &order[*pass]{
			less:  func(a, b *pass) bool { return a.due.Before(b.due) },
			place: func(p *pass) *int { return &p.timer },
		},
	}
	q.idle.L = &q.mu
	return q
}

// Add asks for a pass, at priority 0.
func (q *Queue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

// AddAfter asks for a pass in a while, at priority 0.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited asks for a pass when the rate limiter says so, at priority 0.
func (q *Queue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// AddWithOpts asks for passes. One that is asked for without delay is told as
// an event by [Queue.Event].
func (q *Queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping {
		return
	}
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	for _, request := range requests {
		delay := o.After
		if o.RateLimited {
			if limit := q.limiter.When(request); delay <= 0 || limit < delay {
				delay = limit
			}
		}
		q.ask(request, priority, delay, o.After <= 0 && !o.RateLimited)
	}
	q.handOut()
	q.setAlarm()
}

func (q *Queue) ask(request reconcile.Request, priority int, delay time.Duration, event bool) {
	if delay > 0 {
		q.metrics.retries.Inc()
	}
	p, known := q.asked[request]
	if !known {
		p = &pass{request: request, priority: priority}
		q.asked[request] = p
	}
	p.priority = max(p.priority, priority)
	p.event = p.event || event
	switch due := q.clock.Now().Add(delay); {
	case p.place != nil:
		if l := laneOf(p.priority); l != p.lane {
			q.unline(p)
			q.line(p)
		}
	case known && p.timer == 0: // held, and what is asked for now waits with it
	case delay <= 0:
		q.delayed.drop(p)
		q.ready(p)
	case p.timer == 0 || due.Before(p.due):
		p.due = due
		q.delayed.put(p)
	}
}

// ready has a pass wait in line, or be held while another over the same request runs.
func (q *Queue) ready(p *pass) {
	if q.running[p.request] == nil {
		q.metrics.adds.Inc()
		q.line(p)
	}
}

func (q *Queue) line(p *pass) {
	q.lines.enter(p, laneOf(p.priority), q.clock.Now())
	q.metrics.depth[p.lane].Inc()
}

func (q *Queue) unline(p *pass) {
	q.metrics.depth[p.lane].Dec()
	q.lines.leave(p)
}

// setAlarm sees to it that the delayed pass that is due first is not forgotten.
func (q *Queue) setAlarm() {
	first := q.delayed.first()
	if first == nil || (!q.alarmAt.IsZero() && !first.due.Before(q.alarmAt)) {
		return
	}
	if q.alarm != nil {
		q.alarm.Stop()
	}
	q.alarmAt = first.due
	q.alarm = q.clock.AfterFunc(first.due.Sub(q.clock.Now()), q.ring)
}

// ring has those delayed passes wait in line that are due.
func (q *Queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopping {
		return // what is delayed is dropped
	}
	q.alarmAt = time.Time{}
	for now := q.clock.Now(); ; {
		p := q.delayed.first()
		if p == nil || p.due.After(now) {
			break
		}
		q.delayed.drop(p)
		q.ready(p)
	}
	q.handOut()
	q.setAlarm()
}

// handOut gives free slots to those that are next.
func (q *Queue) handOut() {
	for p := q.lines.next(len(q.takers) > 0); p != nil; p = q.lines.next(len(q.takers) > 0) {
		if p.lane == resuming {
			close(p.resumed)
			continue
		}
		delete(q.asked, p.request)
		q.running[p.request] = p
		p.started = q.clock.Now()
		q.metrics.depth[p.lane].Dec()
		q.metrics.latency.Observe(p.started.Sub(p.since).Seconds())
		q.watch()
		last := len(q.takers) - 1
		q.takers[last] <- p // has room for one
		q.takers = q.takers[:last]
	}
	if q.stopping && q.lines.depth == 0 {
		for _, taker := range q.takers {
			close(taker)
		}
		q.takers = nil
	}
}

// GetWithPriority waits for a request whose turn it is, and for a slot for it.
// Done must be called when the pass over it has ended. After ShutDown it hands
// out what waits in line, and then tells of the shutdown.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	taker := make(chan *pass, 1)
	q.mu.Lock()
	q.takers = append(q.takers, taker)
	q.handOut()
	q.mu.Unlock()
	p := <-taker
	if p == nil {
		return reconcile.Request{}, 0, true
	}
	return p.request, p.priority, false
}

// Get is GetWithPriority without the priority.
func (q *Queue) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// Done says that the pass over the request has ended, whatever state it is in.
func (q *Queue) Done(request reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.running[request]
	if p == nil {
		return
	}
	delete(q.running, request)
	p.ended = true
	q.letGo(p)
	q.lines.release(p)
	q.metrics.work.Observe(q.clock.Since(p.started).Seconds())
	if held := q.asked[request]; held != nil && held.timer == 0 {
		q.ready(held)
	}
	q.handOut()
	if len(q.running) == 0 {
		q.idle.Broadcast()
		if q.lines.depth == 0 {
			q.lines.forget()
		}
	}
}

// Event tells whether the pass over the request, which must have been handed
// out, was asked for by anything but a timer: by an Add without delay, which is
// how a watch tells of an object. A delayed or rate limited one is a timer.
func (q *Queue) Event(request reconcile.Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.running[request]
	return p != nil && p.event
}

// Len is how many requests wait in line. Delayed ones, and those whose last
// pass is still running, do not.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lines.depth
}

// Forget tells the rate limiter that the request is in order again.
func (q *Queue) Forget(request reconcile.Request) { q.limiter.Forget(request) }

// NumRequeues is how often in a row the request was rate limited.
func (q *Queue) NumRequeues(request reconcile.Request) int { return q.limiter.NumRequeues(request) }

// ShuttingDown tells whether ShutDown or ShutDownWithDrain was called.
func (q *Queue) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stopping
}

// ShutDown has the queue take nothing more in, and drop what is delayed. What
// waits in line is still handed out. Passes that yielded go on without a slot.
func (q *Queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop()
	q.draining = false
	q.idle.Broadcast()
}

// ShutDownWithDrain is ShutDown, and waits until no pass is handed out, or
// until ShutDown is called.
func (q *Queue) ShutDownWithDrain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop()
	q.draining = true
	for len(q.running) > 0 && q.draining {
		q.idle.Wait()
	}
}

func (q *Queue) stop() {
	q.stopping = true
	for _, p := range q.running {
		q.letGo(p)
	}
	q.handOut()
}
