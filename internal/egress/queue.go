package egress

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// ticketLife is how long after its time a ticket is kept for whoever holds it.
const ticketLife = time.Minute

// Call is a call that is to be made.
type Call struct {
	// Namespace is whom the call is made for.
	Namespace string
	// Name stands for the call: the same call, tried again, has the same name, and
	// no other of the namespace has.
	Name string
}

// ticket is what is kept for a call that was told to come back.
type ticket struct {
	call Call
	slot           // zero when it waits for other calls to end only
	told time.Time // until then its holder was told to stay away
}

// slot is a time at which a call may be made, with the token for it.
type slot struct {
	reservation *rate.Reservation
	at          time.Time
}

// queue is the calls that were told to come back, and the order in which they get
// the tokens of a limiter. A token is kept for a call from when it is told its time
// until it comes: whoever has to make two calls one after the other would never
// come to an end otherwise.
type queue struct {
	tickets map[Call]*ticket
	waiting map[string]int // how many tickets a namespace has
	line    []*ticket      // those with a slot, in the order of their times
}

func newQueue() queue { return queue{tickets: map[Call]*ticket{}, waiting: map[string]int{}} }

// of is the ticket of a call, made if it has none.
func (q *queue) of(call Call) *ticket {
	t := q.tickets[call]
	if t == nil {
		t = &ticket{call: call}
		q.tickets[call] = t
		q.waiting[call.Namespace]++
	}
	return t
}

// enter gives a ticket its place in the line, by turns: the first of each
// namespace, then the second of each, and so on. Those behind it move back by a
// slot, and the last takes the new one. So a namespace with a thousand calls in the
// line delays another's first by no more than its own first.
func (q *queue) enter(t *ticket, last slot) {
	i := q.placeFor(t.call.Namespace)
	q.line = slices.Insert(q.line, i, t)
	for ; i < len(q.line)-1; i++ {
		q.line[i].slot = q.line[i+1].slot
	}
	q.line[i].slot = last
}

// placeFor is where the next call of a namespace belongs: before the first that
// has more of its own namespace before it.
func (q *queue) placeFor(namespace string) int {
	own := 0
	for _, t := range q.line {
		if t.call.Namespace == namespace {
			own++
		}
	}
	before := map[string]int{}
	for i, t := range q.line {
		if before[t.call.Namespace] > own {
			return i
		}
		before[t.call.Namespace]++
	}
	return len(q.line)
}

// drop drops the ticket of a call, if it has one.
func (q *queue) drop(call Call) {
	t := q.tickets[call]
	if t == nil {
		return
	}
	q.forget(t)
	if i := slices.Index(q.line, t); i >= 0 {
		q.line = slices.Delete(q.line, i, i+1)
	}
}

// forget takes a ticket out of everything but the line.
func (q *queue) forget(t *ticket) {
	delete(q.tickets, t.call)
	if q.waiting[t.call.Namespace]--; q.waiting[t.call.Namespace] == 0 {
		delete(q.waiting, t.call.Namespace)
	}
}

// expire drops the tickets whose time was before limit.
func (q *queue) expire(limit time.Time) {
	expired := func(t *ticket) bool { return later(t.at, t.told).Before(limit) }
	for t := range maps.Values(q.tickets) {
		if expired(t) {
			q.forget(t)
		}
	}
	q.line = slices.DeleteFunc(q.line, expired)
}

// giveUp drops all tickets, and gives their tokens back: the last first, as a
// limiter gives back only what nobody reserved after.
func (q *queue) giveUp(now time.Time) {
	for _, t := range slices.Backward(q.line) {
		t.reservation.CancelAt(now)
	}
	*q = newQueue()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
