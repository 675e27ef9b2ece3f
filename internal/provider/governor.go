package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
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
	// The defaults are above what one API server lets the operator make of
	// buckets: they protect a provider from a fault here, not from use.
	defaultQPS   = 500
	defaultBurst = 1000

	// defaultWorkers is how many workers the operator has by default.
	defaultWorkers = 8

	// slowCall is when a call counts as slow. From then on the provider gets
	// half the workers: one that answers slowly, but answers, never opens the
	// circuit, and must not take most of the workers for good.
	slowCall = time.Second

	// firstWindow is how many calls may be under way to a provider that was not
	// heard of yet.
	firstWindow = 2

	// linger is how long a call waits here for one of those under way to end, if
	// these are no older: a provider that answers at once gives it its turn
	// sooner than another pass could begin.
	linger = 25 * time.Millisecond

	// How long a call that found the provider busy is told to stay away, at
	// least and at most.
	minBusy = 100 * time.Millisecond
	maxBusy = 5 * time.Second

	// ticketLife is how long after its time a ticket is kept for whoever holds it.
	ticketLife = time.Minute
)

// Governor bounds the calls to one provider: how many a second, how many at
// once, and none for a while after it could not be reached. All Clients of one
// Owner share one. Nothing waits in it for longer than a moment: a call that may
// not be made is told when to come back. What it knows is a hint; losing it does
// no harm.
//
// How many calls may be under way grows by one with each answer and is halved
// by each call without one, as TCP's congestion window is (RFC 5681): a provider
// that does not answer holds few workers, and one that does may have most of them.
type Governor struct {
	clock clock.PassiveClock

	// maxInFlight is one less than the workers, so that one provider can never
	// hold them all; maxInFlightSlow is half of them.
	maxInFlight, maxInFlightSlow int

	mu       sync.Mutex
	limits   Limits
	limiter  *rate.Limiter
	tickets  map[string]*ticket
	sweepAt  time.Time
	inFlight map[*flight]struct{}
	released chan struct{} // closed when a call under way ends
	window   int           // how many calls may be under way
	circuit  circuit
	target   [sha256.Size]byte
	quiet    time.Time // until then the provider wants no calls
}

// ticket is a place in the queue of a call that was told to come back.
type ticket struct {
	reservation *rate.Reservation // nil when it waits for other calls to end only
	at          time.Time         // when it may be used
}

// flight is a call under way.
type flight struct {
	since time.Time
	trial bool
}

// NewGovernor makes a Governor that allows limits, for an operator with so
// many workers; 0 means the default, 8.
func NewGovernor(clock clock.PassiveClock, limits Limits, workers int) *Governor {
	limits, workers = limits.orDefault(), cmp.Or(workers, defaultWorkers)
	return &Governor{
		maxInFlight:     max(1, workers-1),
		window:          firstWindow,
		released:        make(chan struct{}),
		maxInFlightSlow: max(1, workers/2),

		clock:    clock,
		limits:   limits,
		limiter:  rate.NewLimiter(rate.Limit(limits.QPS), int(limits.Burst)),
		tickets:  map[string]*ticket{},
		inFlight: map[*flight]struct{}{},
	}
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

// SetLimits changes the limits. Places in the queue are given up, as they were
// given under the old ones: whoever comes back is told a new time.
func (g *Governor) SetLimits(limits Limits) {
	limits = limits.orDefault()
	g.mu.Lock()
	defer g.mu.Unlock()
	if limits == g.limits {
		return
	}
	now := g.clock.Now()
	g.returnTickets(now)
	g.limits = limits
	g.limiter.SetLimitAt(now, rate.Limit(limits.QPS))
	g.limiter.SetBurstAt(now, int(limits.Burst))
}

// returnTickets gives the tokens of all tickets back, the latest first, as the
// limiter gives back only what nobody reserved after.
func (g *Governor) returnTickets(now time.Time) {
	reserved := make([]*ticket, 0, len(g.tickets))
	for _, t := range g.tickets {
		if t.reservation != nil {
			reserved = append(reserved, t)
		}
	}
	slices.SortFunc(reserved, func(a, b *ticket) int { return b.at.Compare(a.at) })
	for _, t := range reserved {
		t.reservation.CancelAt(now)
	}
	clear(g.tickets)
}

// Retarget says where the calls go, and as whom. What is known of another
// target, that it cannot be reached or wants no calls, does not hold for a new one.
func (g *Governor) Retarget(endpoint string, credentials map[string][]byte) {
	target := digestOf(endpoint, credentials)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.target != target {
		g.target = target
		g.circuit.reached()
		g.quiet = time.Time{}
		g.window = firstWindow
	}
}

// digestOf tells targets apart without keeping credentials.
func digestOf(endpoint string, credentials map[string][]byte) [sha256.Size]byte {
	hash := sha256.New()
	add := func(part []byte) { _, _ = fmt.Fprintf(hash, "%d:%s", len(part), part) }
	add([]byte(endpoint))
	for _, key := range slices.Sorted(maps.Keys(credentials)) {
		add([]byte(key))
		add(credentials[key])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// Admit asks to make a call now. The name of the ticket stands for the call:
// the same call, tried again, has the same name, and no other has. If the call
// may be made, done must be called with its result when it has ended.
//
// Otherwise Admit answers with an *Error. A Throttled one tells in After when
// to come back with the same ticket; a token is kept for it until then, so that
// each of many that wait is told another time. Tickets that nobody comes back
// with expire.
func (g *Governor) Admit(ctx context.Context, name string) (done func(err error), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lingerForTurn(ctx)
	now := g.clock.Now()
	g.sweep(now)
	if err := g.circuit.refuse(now); err != nil {
		return nil, err
	}
	if g.quiet.After(now) {
		return nil, &Error{
			Class: Throttled, Reason: "ProviderThrottled", Refused: true, After: g.quiet.Sub(now),
			Message: "the provider asks for fewer calls",
		}
	}
	if err := g.refuseBusy(name, now); err != nil {
		return nil, err
	}
	if err := g.take(name, now); err != nil {
		return nil, err
	}
	return g.start(now), nil
}

// lingerForTurn waits, without the lock, while the provider is busy with calls
// that are only just under way.
func (g *Governor) lingerForTurn(ctx context.Context) {
	if !g.soonFree() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	for g.soonFree() && ctx.Err() == nil {
		released := g.released
		g.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
}

// soonFree tells whether the provider is busy, but with calls that are only just under way.
func (g *Governor) soonFree() bool {
	return len(g.inFlight) >= g.bound(g.clock.Now()) && g.oldest() < linger
}

// oldest is how long the oldest call has been under way.
func (g *Governor) oldest() time.Duration {
	var oldest time.Duration
	for f := range g.inFlight {
		oldest = max(oldest, g.clock.Since(f.since))
	}
	return oldest
}

// bound is how many calls may be under way now.
func (g *Governor) bound(now time.Time) int {
	bound := min(g.window, g.maxInFlight)
	for f := range g.inFlight {
		if now.Sub(f.since) >= slowCall {
			return min(bound, g.maxInFlightSlow)
		}
	}
	return bound
}

// refuseBusy bounds the calls under way. Those that find it busy come back
// spread over a time that grows with their number.
func (g *Governor) refuseBusy(name string, now time.Time) error {
	if len(g.inFlight) < g.bound(now) {
		return nil
	}
	window := min(maxBusy, minBusy*time.Duration(2+len(g.tickets)))
	after := minBusy + rand.N(window) //nolint:gosec // spread needs no secrecy
	t := g.tickets[name]
	if t == nil {
		t = &ticket{}
		g.tickets[name] = t
	}
	t.at = later(t.at, now.Add(after))
	return &Error{
		Class: Throttled, Reason: "ProviderBusy", Refused: true, Local: true, After: t.at.Sub(now),
		Message: "enough calls to the provider are under way: this one waits for its turn",
	}
}

// take uses up the ticket's token or one that is free; if there is neither, it
// reserves one.
func (g *Governor) take(name string, now time.Time) error {
	t := g.tickets[name]
	if t == nil || t.reservation == nil {
		t = &ticket{reservation: g.limiter.ReserveN(now, 1)}
		t.at = now.Add(t.reservation.DelayFrom(now))
	}
	if t.at.After(now) {
		g.tickets[name] = t
		return &Error{
			Class: Throttled, Reason: "RateLimited", Refused: true, Local: true, After: t.at.Sub(now),
			Message: "the rate limit for calls to the provider is used up: this one waits for its turn",
		}
	}
	delete(g.tickets, name)
	return nil
}

func (g *Governor) start(now time.Time) func(error) {
	f := &flight{since: now, trial: g.circuit.begin()}
	g.inFlight[f] = struct{}{}
	return func(err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if _, underWay := g.inFlight[f]; !underWay {
			return
		}
		delete(g.inFlight, f)
		close(g.released)
		g.released = make(chan struct{})
		g.learn(err, f.trial)
	}
}

// learn draws from the result of a call whether the provider can be reached.
func (g *Governor) learn(err error, trial bool) {
	var e *Error
	switch isError := errors.As(err, &e); {
	case err == nil:
		g.answered()
	case errors.Is(err, ErrUnreachable) && isError:
		g.window = max(1, g.window/2)
		g.circuit.failed(e, trial, g.clock.Now())
	case !isError, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		g.circuit.neither(trial)
	default:
		g.answered()
		if e.Class == Throttled && e.After > 0 {
			g.quiet = later(g.quiet, g.clock.Now().Add(e.After))
		}
	}
}

func (g *Governor) answered() {
	g.window = min(g.window+1, g.maxInFlight)
	g.circuit.reached()
}

// sweep drops the tickets that nobody came back with.
func (g *Governor) sweep(now time.Time) {
	if now.Before(g.sweepAt) {
		return
	}
	g.sweepAt = now.Add(ticketLife)
	// A caller that makes two calls in a pass queues for one while its ticket
	// for the other is kept: tickets outlive the queue.
	queue := time.Duration(max(0, -g.limiter.TokensAt(now)) / float64(g.limits.QPS) * float64(time.Second))
	for name, t := range g.tickets {
		if now.Sub(t.at) > ticketLife+queue {
			delete(g.tickets, name)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Governors are the Governors of one Factory, by Owner. The zero value with a
// Clock is ready to use.
type Governors struct {
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// Workers is how many workers the operator has; 0 means 8.
	Workers int

	mu  sync.Mutex
	all map[string]*Governor
}

// For is the Governor of a configuration's Owner, brought up to date with it.
func (g *Governors) For(config Config) *Governor {
	g.mu.Lock()
	defer g.mu.Unlock()
	governor := g.all[config.Owner]
	if governor == nil {
		governor = NewGovernor(cmp.Or[clock.PassiveClock](g.Clock, clock.RealClock{}), config.Limits, g.Workers)
		g.keep(config.Owner, governor)
	}
	governor.SetLimits(config.Limits)
	governor.Retarget(config.Endpoint, config.Credentials)
	return governor
}

func (g *Governors) keep(owner string, governor *Governor) {
	switch {
	case owner == "":
		return
	case g.all == nil:
		g.all = map[string]*Governor{}
	}
	g.all[owner] = governor
}

// Forget drops the Governor of owner. Clients that are open keep theirs.
func (g *Governors) Forget(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, owner)
}
