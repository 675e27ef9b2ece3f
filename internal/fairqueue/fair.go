package fairqueue

import (
	"cmp"
	"container/list"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lowTurn is how often low priority gets its turn while it waits: one hand-out
// in so many, whatever else waits.
const lowTurn = 8

// reserve bounds what one namespace holds: beside the slots that it holds already
// it gets another while reserve times as many are fewer than the free ones. So
// one alone has at most a quarter of the slots, at least one, and a namespace
// that comes next finds free slots, and an API server that is not busy with
// others alone. These are the dynamic thresholds of Choudhury and Hahne
// (IEEE/ACM Transactions on Networking, 1998), with an alpha of 1/reserve.
const reserve = 3

// lane is one of the lines in which a namespace's passes wait, in the order in
// which it sends them.
type lane int

const (
	resuming lane = iota // passes that had given their slot back
	high                 // something is new or has changed
	low                  // the initial list, and resyncs
	lanes
)

// turn is the order, beside those of the lanes, by which low priority gets its turn.
const turn = lanes

// laneOf is the lane of a pass that was not handed out yet.
func laneOf(priority int) lane {
	if priority < 0 {
		return low
	}
	return high
}

// pass is a pass over an object: asked for, waiting or handed out.
type pass struct {
	request  reconcile.Request
	priority int
	event    bool // not only a timer asks for it

	due   time.Time // when a delayed one is to wait in line
	timer int       // its place among the delayed

	lane  lane
	share *share
	place *list.Element // in the lane; nil while it does not wait in line
	since time.Time     // when it got that place

	// The rest is of a pass that was handed out.
	started time.Time
	slot    bool // it holds one
	outside int  // how many of its goroutines have yielded and not resumed
	ended   bool
	resumed chan struct{}
}

// share is a namespace's part in the queue.
type share struct {
	active        int    // slots that its passes hold
	served        uint64 // when it was last served, by the count of hand-outs
	servedLow     uint64 // the same, of low priority
	arrived       uint64 // for the order of those that were not served yet
	lines         [lanes]list.List
	placeInOrders [lanes + 1]int
}

func (s *share) waiting() int {
	return s.lines[resuming].Len() + s.lines[high].Len() + s.lines[low].Len()
}

// fairer tells whether a is to be served before b: it has fewer passes at work,
// or was served longer ago.
func fairer(a, b *share) bool {
	return cmp.Or(cmp.Compare(a.active, b.active), cmp.Compare(a.served, b.served), cmp.Compare(a.arrived, b.arrived)) < 0
}

// lines are the lines of all namespaces, and the choice between them. Each
// change costs the logarithm of the number of namespaces that wait, however
// much each of them has waiting.
type lines struct {
	workers int // slots
	shares  map[string]*share
	// The namespaces with something in the lane, and, in turn, those with low priority.
	orders   [lanes + 1]*order[*share]
	active   int    // slots held
	depth    int    // passes in line that were not handed out yet
	served   uint64 // hand-outs so far
	arrived  uint64
	sinceLow int // hand-outs since the last of low priority, while there is some
}

func newLines(workers int) *lines {
	f := &lines{workers: workers, shares: map[string]*share{}}
	for l := range f.orders {
		f.orders[l] = &order[*share]{less: fairer, place: func(s *share) *int { return &s.placeInOrders[l] }}
	}
	f.orders[turn].less = func(a, b *share) bool {
		return cmp.Or(cmp.Compare(a.servedLow, b.servedLow), cmp.Compare(a.arrived, b.arrived)) < 0
	}
	return f
}

// enter puts a pass at the end of a lane.
func (f *lines) enter(p *pass, l lane, now time.Time) {
	s := f.shares[p.request.Namespace]
	if s == nil {
		f.arrived++
		s = &share{arrived: f.arrived}
		f.shares[p.request.Namespace] = s
	}
	p.share, p.lane, p.since = s, l, now
	p.place = s.lines[l].PushBack(p)
	if l != resuming {
		f.depth++
	}
	f.settle(s)
}

// leave takes a pass out of its lane.
func (f *lines) leave(p *pass) {
	p.share.lines[p.lane].Remove(p.place)
	p.place = nil
	if p.lane != resuming {
		f.depth--
	}
	f.settle(p.share)
}

// choose is the namespace whose turn it is, and the lane of its pass; nil if
// none can go on. Without a taker only a pass that was handed out before can.
func (f *lines) choose(taker bool) (*share, lane) {
	if f.active >= f.workers {
		return nil, 0
	}
	if taker && len(f.orders[low].items) > 0 && f.sinceLow >= lowTurn-1 {
		// Whether there is room for it plays no part, or its turn would not come
		// while the namespace's changes take all that it may have.
		return f.orders[turn].first(), low
	}
	s, l := f.orders[resuming].first(), resuming
	if taker {
		if h := f.orders[high].first(); h != nil && (s == nil || fairer(h, s)) {
			s, l = h, high
		}
	}
	if f.mayHoldMore(s) {
		return s, l
	}
	if s = f.orders[low].first(); taker && f.mayHoldMore(s) {
		return s, low
	}
	return nil, 0
}

// mayHoldMore tells whether there is room for one more pass of the namespace.
// If there is none, then there is none for those that hold more either.
func (f *lines) mayHoldMore(s *share) bool {
	return s != nil && (s.active == 0 || reserve*s.active < f.workers-f.active)
}

// next takes the pass that is next out of its lane, and gives it a slot; nil if
// none can go on. Without a taker only one that was handed out before can.
func (f *lines) next(taker bool) *pass {
	if f.active < f.workers && taker && len(f.orders[low].items) == 0 {
		f.sinceLow = 0
	}
	s, l := f.choose(taker)
	if s == nil {
		return nil
	}
	p := s.lines[l].Front().Value.(*pass)
	f.served++
	s.served = f.served
	f.sinceLow++
	if l == low {
		s.servedLow, f.sinceLow = f.served, 0
	}
	f.hold(p)
	f.leave(p)
	return p
}

// hold gives a pass a slot.
func (f *lines) hold(p *pass) {
	p.slot = true
	p.share.active++
	f.active++
	f.settle(p.share)
}

// release takes a pass's slot back, if it holds one.
func (f *lines) release(p *pass) {
	if !p.slot {
		return
	}
	p.slot = false
	p.share.active--
	f.active--
	f.settle(p.share)
}

// settle puts a namespace where it belongs in all orders.
func (f *lines) settle(s *share) {
	for l, o := range f.orders {
		if s.lines[min(lane(l), low)].Len() > 0 {
			o.put(s)
		} else {
			o.drop(s)
		}
	}
}

// forget drops all namespaces, at a time when none of them waits or works. Up
// to then each is remembered, or one that comes back at once would always pass
// for one that was not served for long.
func (f *lines) forget() {
	if len(f.shares) > 0 {
		f.shares = map[string]*share{}
	}
}
