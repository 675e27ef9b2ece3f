package fairqueue

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// routineEvery is the share of routine work while there is urgent work: one pass
// in so many.
const routineEvery = 8

// order decides what is worked on next, and by how many workers.
//
// A freed worker goes to the namespace with the fewest workers and, among equals,
// to the one that has waited longest. A namespace gets a further worker only
// while it has fewer than are free (Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches", IEEE/ACM ToN 1998, with alpha
// 1): one alone gets half of them, n of them 1/(n+1) each, and a namespace that
// comes new finds one free. Each decision takes a time that depends on the
// number of workers alone, however deep the backlog is.
//
// It is the workqueue.Queue inside client-go's work queue, which keeps apart what
// waits, what is worked on and what was asked for meanwhile. That one holds its
// own lock when it calls Push, Touch, Len and Pop.
type order struct {
	clock   clock.PassiveClock
	workers int

	mu      sync.Mutex
	tenants map[string]*tenant
	wanted  map[reconcile.Request]wish // what is known of those that were asked for
	running map[reconcile.Request]*pass
	active  int             // passes at work
	handed  int             // passes handed out
	idle    []chan struct{} // workers without work; the last to come is the first to go
	chosen  list.List       // *pass: those whose turn it is, one for each worker that was woken
	ranks   [nothing][]*list.List
	ended   bool
}

// wish is how a pass was asked for.
type wish struct {
	priority int
	event    bool // anything but a time that has come has asked for it
}

// item is an object that waits for a pass.
type item struct {
	request reconcile.Request
	since   time.Time
	rank    rank
	element *list.Element // in its tenant's list; nil once it was chosen
}

// pass is a pass that was chosen, or is under way.
type pass struct {
	request reconcile.Request
	tenant  *tenant
	wish    wish
	yielded bool
}

// rank is the kind of work that a tenant has to do next.
type rank int

const (
	resuming rank = iota // a pass goes on
	urgent               // what is new or has changed
	routine              // resyncs
	nothing
)

// rank is where a wish stands.
func (w wish) rank() rank {
	if w.priority < 0 {
		return routine
	}
	return urgent
}

// tenant is a namespace with work.
type tenant struct {
	namespace string
	waiting   map[reconcile.Request]*item
	active    int // passes at work
	passes    int // passes under way, those that wait for the outside among them
	resumers  list.List
	items     [nothing]list.List // of ranks urgent and routine

	rank    rank // where it stands in order.ranks
	level   int
	element *list.Element
}

func newOrder(workers int, clock clock.PassiveClock) *order {
	o := &order{
		clock: clock, workers: max(1, workers),
		tenants: map[string]*tenant{}, wanted: map[reconcile.Request]wish{}, running: map[reconcile.Request]*pass{},
	}
	for rank := range o.ranks {
		for range o.workers + 1 {
			o.ranks[rank] = append(o.ranks[rank], list.New())
		}
	}
	return o
}

// want notes how a pass is asked for, before client-go's queue is told of it. The
// highest priority counts until the pass begins.
func (o *order) want(request reconcile.Request, w wish) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, ok := o.wanted[request]; ok {
		w = wish{priority: max(known.priority, w.priority), event: known.event || w.event}
	}
	o.wanted[request] = w
}

// Push takes in an object that waits for a pass.
func (o *order) Push(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.wanted[request]; !known {
		o.wanted[request] = wish{event: true} // asked for while the pass before began
	}
	t := o.tenants[request.Namespace]
	if t == nil {
		t = &tenant{namespace: request.Namespace, rank: nothing, waiting: map[reconcile.Request]*item{}}
		o.tenants[t.namespace] = t
	}
	i := &item{request: request, since: o.clock.Now()}
	t.waiting[request] = i
	o.enqueue(t, i)
}

// Touch hears that an object that waits was asked for again.
func (o *order) Touch(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.tenants[request.Namespace]
	if t == nil || t.waiting[request] == nil {
		return
	}
	if i := t.waiting[request]; i.element != nil && o.wanted[request].rank() != i.rank {
		t.items[i.rank].Remove(i.element)
		o.enqueue(t, i)
	}
}

// enqueue puts an object into its tenant's list.
func (o *order) enqueue(t *tenant, i *item) {
	i.rank = o.wanted[i.request].rank()
	i.element = t.items[i.rank].PushBack(i)
	o.place(t)
	o.dispatch()
}

// Len is how many objects a worker can take now. Client-go's queue lets a worker
// wait while it is 0.
func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.chosen.Len()
}

// Pop hands out the object whose turn it is.
func (o *order) Pop() reconcile.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.chosen.Remove(o.chosen.Front()).(*pass)
	p.wish = o.wanted[p.request]
	delete(o.wanted, p.request)
	delete(p.tenant.waiting, p.request)
	return p.request
}

// turn waits until there is something to do for one more worker, or the end.
func (o *order) turn() {
	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	woken := make(chan struct{})
	o.idle = append(o.idle, woken)
	o.dispatch()
	o.mu.Unlock()
	<-woken
}

// place puts a tenant where its next work is looked for. It keeps its turn
// unless its rank or the number of its workers has changed.
func (o *order) place(t *tenant) {
	next := nothing
	switch {
	case t.resumers.Len() > 0:
		next = resuming
	case t.items[urgent].Len() > 0:
		next = urgent
	case t.items[routine].Len() > 0:
		next = routine
	}
	level := min(t.active, o.workers)
	if next == t.rank && level == t.level {
		return
	}
	if t.element != nil {
		o.ranks[t.rank][t.level].Remove(t.element)
		t.element = nil
	}
	t.rank, t.level = next, level
	if next != nothing {
		t.element = o.ranks[next][level].PushBack(t)
	}
}

// dispatch gives work to workers while that may be.
func (o *order) dispatch() {
	for o.active < o.workers {
		t := o.pick()
		switch {
		case t == nil:
			return
		case t.rank == resuming:
			o.resume(t)
		default:
			o.choose(t)
		}
	}
}

// pick is the tenant whose turn it is; nil when nobody may have a worker.
func (o *order) pick() *tenant {
	free := o.workers - o.active
	if len(o.idle) == 0 {
		return o.first(free, resuming)
	}
	soon, later := o.first(free, resuming, urgent), o.first(free, routine)
	if soon == nil || later != nil && o.handed%routineEvery == routineEvery-1 {
		return later
	}
	return soon
}

// first is the tenant with the fewest workers, fewer than are free, that has
// work of one of the ranks.
func (o *order) first(free int, ranks ...rank) *tenant {
	for level := range free {
		for _, rank := range ranks {
			if front := o.ranks[rank][level].Front(); front != nil {
				return front.Value.(*tenant)
			}
		}
	}
	return nil
}

// choose wakes a worker for a tenant's next object.
func (o *order) choose(t *tenant) {
	items := &t.items[t.rank]
	i := items.Remove(items.Front()).(*item)
	i.element = nil
	p := &pass{request: i.request, tenant: t}
	o.running[i.request] = p
	o.chosen.PushBack(p)
	t.passes++
	o.handed++
	o.count(p, 1)
	last := len(o.idle) - 1
	close(o.idle[last])
	o.idle = o.idle[:last]
}

// count counts a pass that begins or goes on (1), or that waits or ends (-1).
func (o *order) count(p *pass, by int) {
	o.active += by
	p.tenant.active += by
	p.yielded = by < 0
	o.place(p.tenant)
}

// end ends a pass.
func (o *order) end(request reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.running[request]
	if p == nil {
		return
	}
	delete(o.running, request)
	p.tenant.passes--
	if !p.yielded {
		o.count(p, -1)
	}
	if t := p.tenant; t.rank == nothing && t.passes == 0 && len(t.waiting) == 0 {
		delete(o.tenants, t.namespace)
	}
	o.dispatch()
}

// resumer is a pass that waits for a worker to go on.
type resumer struct {
	pass    *pass
	granted chan struct{}
}

// yield gives the worker of a pass back until resume.
func (o *order) yield(request reconcile.Request) (resume func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.running[request]
	if p == nil || p.yielded {
		return func() {}
	}
	o.count(p, -1)
	o.dispatch()
	return sync.OnceFunc(func() { o.goOn(p) })
}

// goOn waits until there is a worker for a pass that has yielded.
func (o *order) goOn(p *pass) {
	o.mu.Lock()
	if o.running[p.request] != p {
		o.mu.Unlock()
		return
	}
	if o.ended {
		o.count(p, 1) // what is under way may come to its end
		o.mu.Unlock()
		return
	}
	r := &resumer{pass: p, granted: make(chan struct{})}
	p.tenant.resumers.PushBack(r)
	o.place(p.tenant)
	o.dispatch()
	o.mu.Unlock()
	<-r.granted
}

// resume lets the pass of a tenant go on that has waited for that longest.
func (o *order) resume(t *tenant) {
	r := t.resumers.Remove(t.resumers.Front()).(*resumer)
	o.count(r.pass, 1)
	close(r.granted)
}

// event tells whether anything but a time that has come has asked for the pass
// over an object that is under way.
func (o *order) event(request reconcile.Request) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.running[request]
	return p == nil || p.wish.event
}

// priorityOf is the priority of the pass that is under way.
func (o *order) priorityOf(request reconcile.Request) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.running[request]; p != nil {
		return p.wish.priority
	}
	return 0
}

// close wakes all workers, and lets all passes that wait go on.
func (o *order) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, worker := range o.idle {
		close(worker)
	}
	o.idle = nil
	for _, t := range o.tenants {
		for t.resumers.Len() > 0 {
			o.resume(t)
		}
	}
}
