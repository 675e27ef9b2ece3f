package egress

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// The defaults are above what one API server lets the operator make of objects:
	// they protect a destination from a fault here, not from use.
	defaultQPS   = 500
	defaultBurst = 1000

	// firstWindow is how many calls for a namespace may be in flight to a destination
	// that was not heard of yet.
	firstWindow = 2

	// maxWindow is how many may be at most. A destination that answers in 50 ms gets
	// more than 300 calls a second out of it. A namespace has a share of 64 in a Pool
	// of the usual size, which is four such destinations.
	maxWindow = 16

	// slowCall is when a call counts as slow, and slowWindow how many calls a
	// namespace with a slow one may have in flight to the destination. One that
	// answers slowly, but answers, never opens the circuit: it must leave room for the
	// namespace's others, sixteen of them. Calls for other namespaces are not held back
	// by it.
	slowCall   = time.Second
	slowWindow = 4

	// linger is how long a call waits here for one in flight to end, if these are no
	// older: a destination that answers at once gives it its turn sooner than another
	// pass could begin.
	linger = 25 * time.Millisecond

	// How long a call that found no place is told to stay away, at least and at most.
	minBusy = 100 * time.Millisecond
	maxBusy = 5 * time.Second
)

// Limits bound the calls to one destination. Zero values mean the defaults.
type Limits struct {
	// QPS is how many calls a second are allowed on average; 0 means 500.
	QPS int32
	// Burst is how many calls may be made at once after a quiet time; 0 means 1000.
	Burst int32
}

// orDefault fills in the defaults.
func (l Limits) orDefault() Limits {
	if l.QPS <= 0 {
		l.QPS = defaultQPS
	}
	if l.Burst <= 0 {
		l.Burst = defaultBurst
	}
	return l
}

// Governor bounds the calls to one destination: how many a second, how many at
// once, and none for a while after it could not be reached. Nothing waits in it for
// longer than a moment: a call that may not be made is told when to come back. What
// it knows is a hint; losing it does no harm.
//
// How many calls may be in flight grows by one with each answer and is halved by
// each call without one, as TCP's congestion window is (RFC 5681): a destination
// that does not answer takes few places of its namespace's share in the Pool. Of one
// that namespaces share, there is twice the window for all; that and the tokens are
// dealt out to them by turns.
type Governor struct {
	clock       clock.PassiveClock
	pool        *Pool
	fence       Fence
	destination Destination
	linger      time.Duration

	mu       sync.Mutex
	limits   Limits
	limiter  *rate.Limiter
	queue    queue
	sweepAt  time.Time
	inFlight map[*flight]struct{}
	places   shares
	released chan struct{}       // closed when a call in flight ends
	window   int                 // how many calls for a single namespace may be in flight
	circuits map[string]*circuit // by namespace where these share the destination, else one for ""
	target   [sha256.Size]byte
	quiet    time.Time // until then the destination wants no calls
	heldAt   time.Time // when a call last found no place
}

// flight is a call in flight.
type flight struct {
	namespace string
	since     time.Time
	target    [sha256.Size]byte // where it goes
	trial     bool
}

// newGovernor makes a Governor that allows limits.
func newGovernor(clock clock.PassiveClock, pool *Pool, fence Fence, destination Destination, limits Limits) *Governor {
	limits = limits.orDefault()
	return &Governor{
		clock: clock, pool: pool, fence: fence, destination: destination, linger: linger,
		limits:   limits,
		limiter:  rate.NewLimiter(rate.Limit(limits.QPS), int(limits.Burst)),
		queue:    newQueue(),
		inFlight: map[*flight]struct{}{},
		circuits: map[string]*circuit{},
		released: make(chan struct{}),
		window:   firstWindow,
	}
}

// setLimits changes the limits. Places in the queue are given up, as they were
// given under the old ones: whoever comes back is told a new time.
func (g *Governor) setLimits(limits Limits) {
	limits = limits.orDefault()
	g.mu.Lock()
	defer g.mu.Unlock()
	if limits == g.limits {
		return
	}
	now := g.clock.Now()
	g.queue.giveUp(now)
	g.limits = limits
	g.limiter.SetLimitAt(now, rate.Limit(limits.QPS))
	g.limiter.SetBurstAt(now, int(limits.Burst))
}

// retarget says where the calls go, and as whom. What is known of another
// target, that it cannot be reached or wants no calls, does not hold for a new one.
func (g *Governor) retarget(address string, credentials map[string][]byte) {
	target := digestOf(address, credentials)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.target != target {
		g.target = target
		clear(g.circuits)
		g.quiet = time.Time{}
		g.window = firstWindow
	}
}

// digestOf tells targets apart without keeping credentials.
func digestOf(address string, credentials map[string][]byte) [sha256.Size]byte {
	hash := sha256.New()
	add := func(part []byte) { _, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) }
	add([]byte(address))
	for _, key := range slices.Sorted(maps.Keys(credentials)) {
		add([]byte(key))
		add(credentials[key])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// Admit asks to make a call now. If it may be made, done must be called with its
// outcome when it has ended. Meanwhile the worker of ctx is given back, see Yield;
// done waits until there is one again.
//
// Otherwise Admit answers with an *Error. A HeldBack one tells in After when to
// come back with the same Call; a token is kept for it until then, so that each of
// many that wait is told another time. What is kept for calls that nobody comes back
// with expires.
func (g *Governor) Admit(ctx context.Context, call Call) (done func(Outcome), err error) {
	worker := &worker{ctx: ctx}
	f, refusal := g.enter(ctx, worker, call)
	if refusal != nil {
		g.pool.count(refusal)
		worker.takeAgain()
		return nil, refusal
	}
	worker.yield()
	var once sync.Once
	return func(outcome Outcome) {
		once.Do(func() {
			g.leave(f, outcome)
			worker.takeAgain()
		})
	}, nil
}

// enter lets a call in, or refuses it.
func (g *Governor) enter(ctx context.Context, worker *worker, call Call) (*flight, *Error) {
	if err := g.fence.check(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lingerForTurn(ctx, worker, call.Namespace)
	now := g.clock.Now()
	g.sweep(now)
	if c := g.circuits[g.circuitOf(call.Namespace)]; c != nil {
		if err := c.refuse(now); err != nil {
			return nil, err
		}
	}
	if g.quiet.After(now) {
		return nil, heldBack(LimitQuiet, g.quiet.Sub(now))
	}
	if !g.room(call.Namespace, now) {
		g.places.claim(call.Namespace, now)
		return nil, g.busy(LimitWindow, call, now)
	}
	if !g.pool.take(call.Namespace, now) {
		return nil, g.busy(LimitNamespace, call, now)
	}
	if err := g.takeToken(call, now); err != nil {
		g.pool.give(call.Namespace)
		return nil, err
	}
	f := &flight{namespace: call.Namespace, since: now, target: g.target}
	if c := g.circuits[g.circuitOf(call.Namespace)]; c != nil {
		f.trial = c.begin()
	}
	g.inFlight[f] = struct{}{}
	g.places.take(call.Namespace)
	return f, nil
}

// leave notes that a call has ended.
func (g *Governor) leave(f *flight, outcome Outcome) {
	g.pool.give(f.namespace)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.inFlight, f)
	g.places.give(f.namespace)
	close(g.released)
	g.released = make(chan struct{})
	if f.target == g.target { // else it tells of where calls go no more
		g.learn(f, outcome)
	}
}

// learn draws from the outcome of a call whether the destination can be reached.
func (g *Governor) learn(f *flight, outcome Outcome) {
	now, key := g.clock.Now(), g.circuitOf(f.namespace)
	switch c := g.circuits[key]; {
	case outcome.failure != nil:
		g.window = max(1, g.window/2)
		if c == nil {
			c = &circuit{}
			g.circuits[key] = c
		}
		c.failed(outcome.failure, f.trial, now)
	case outcome.answered:
		g.window = min(g.window+1, maxWindow)
		delete(g.circuits, key)
		g.quiet = later(g.quiet, now.Add(outcome.quiet))
	case c != nil:
		c.neither(f.trial)
	}
}

// circuitOf is the key of the circuit for a namespace's calls. Namespaces that
// share a destination have one each: otherwise one whose calls it does not answer,
// because of what they ask for, would have the calls of all others stopped, and
// use up the trials.
func (g *Governor) circuitOf(namespace string) string {
	if g.destination.shared() {
		return namespace
	}
	return ""
}

// circuitOpen tells whether calls are stopped: those of any namespace.
func (g *Governor) circuitOpen() bool {
	for _, c := range g.circuits {
		if c.open() {
			return true
		}
	}
	return false
}

// lingerForTurn waits, without the lock and without a worker, while there is no
// place because of calls that are only just in flight.
func (g *Governor) lingerForTurn(ctx context.Context, worker *worker, namespace string) {
	if !g.soonFree(namespace) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.linger)
	defer cancel()
	for ctx.Err() == nil && g.soonFree(namespace) {
		g.places.claim(namespace, g.clock.Now())
		released := g.released
		g.mu.Unlock()
		worker.yield()
		select {
		case <-released:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
}

// soonFree tells whether there is no place, but only because of calls that are
// only just in flight.
func (g *Governor) soonFree(namespace string) bool {
	now := g.clock.Now()
	return !g.room(namespace, now) && now.Sub(g.oldest("", now)) < g.linger
}

// oldest is since when the oldest call for a namespace has been in flight, or for
// any if it is empty; now if none is.
func (g *Governor) oldest(namespace string, now time.Time) time.Time {
	oldest := now
	for f := range g.inFlight {
		if (namespace == "" || namespace == f.namespace) && f.since.Before(oldest) {
			oldest = f.since
		}
	}
	return oldest
}

// room tells whether one more call for the namespace may be in flight.
func (g *Governor) room(namespace string, now time.Time) bool {
	switch {
	case g.places.by[namespace] >= slowWindow && now.Sub(g.oldest(namespace, now)) >= slowCall:
		return false
	case g.destination.shared():
		// A single namespace gets half of the places, which is the window.
		return g.places.room(namespace, 2*g.window, now)
	}
	return g.places.taken < g.window
}

// busy tells a call that found no place when to come back: those of a namespace
// spread over a time that grows with their number.
func (g *Governor) busy(limit Limit, call Call, now time.Time) *Error {
	g.heldAt = now
	window := min(maxBusy, minBusy*time.Duration(2+g.queue.waiting[call.Namespace]))
	after := minBusy + rand.N(window) //nolint:gosec // spread needs no secrecy
	t := g.queue.of(call)
	t.told = later(t.told, now.Add(after))
	return heldBack(limit, later(t.told, t.at).Sub(now))
}

// takeToken uses up the token that is kept for the call, or one that is free; if
// there is neither, one is reserved.
func (g *Governor) takeToken(call Call, now time.Time) *Error {
	t := g.queue.tickets[call]
	if t == nil || t.reservation == nil {
		reservation := g.limiter.ReserveN(now, 1)
		next := slot{reservation, now.Add(reservation.DelayFrom(now))}
		if next.at.After(now) {
			t = g.queue.of(call)
			g.queue.enter(t, next)
		}
	}
	if t != nil && t.at.After(now) {
		return heldBack(LimitRate, t.at.Sub(now))
	}
	g.queue.drop(call)
	return nil
}

// sweep drops the tickets that nobody came back with.
func (g *Governor) sweep(now time.Time) {
	if now.Before(g.sweepAt) {
		return
	}
	g.sweepAt = now.Add(ticketLife)
	maps.DeleteFunc(g.circuits, func(_ string, c *circuit) bool { return c.forgettable(now) })
	// A caller that makes two calls in a pass queues for one while its ticket
	// for the other is kept: tickets outlive the queue.
	queue := time.Duration(max(0, -g.limiter.TokensAt(now)) / float64(g.limits.QPS) * float64(time.Second))
	g.queue.expire(now.Add(-ticketLife - queue))
}
