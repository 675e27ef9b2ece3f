package faults

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Event is a request that passed the gate.
type Event struct {
	Effect Effect
	// Read is true when the request changes nothing.
	Read bool
	// Epoch is the incarnation that made it, counted from 1.
	Epoch int
	// Act is the act of the scenario that was on.
	Act int
	// Begin and End order events: End is 0 while the request is under way.
	Begin, End int
	// At is when it came.
	At time.Time
	// Path is the URL's.
	Path string
	// Request is the body that was sent, IdempotencyKey the header of that name.
	Request        []byte
	IdempotencyKey string
	// Status and Response are the true answer; the status is 0 when the request
	// was not forwarded.
	Status   int
	Response []byte
	// Fault is what the gate did to it.
	Fault Fault
	// Extra is true for a request that the harness repeated or delayed.
	Extra bool
}

// counts tells whether the event moves the occurrence of its like on. A write
// that the API server refused does not: how often a pass works on a state that
// has just changed is a matter of time.
func (e *Event) counts() bool {
	return e.Effect.Provider || e.Read || e.Fault != None || e.Status > 0 && e.Status < 300
}

// Gate stands between the incarnations of the operator on one side and the API
// server and the provider on the other. It numbers requests, records them, and
// makes the planned one fail.
type Gate struct {
	plan Plan

	mu       sync.Mutex
	act      int
	clock    int
	epoch    int
	seen     map[string]int
	events   []*Event
	posted   [][]byte // bodies of Kubernetes Events
	fired    bool
	disarmed bool
	wrong    int // requests that went wrong so far
	parked   []func()
	inFlight int
	last     time.Time // when an effect or read began or ended
	lastWork time.Time // the same, of effects alone
	stale    *staleness
	streams  map[string]bool // informers of this epoch that are connected
	expected int             // how many there are when the operator is up
}

// newGate is a Gate that carries out the plan.
func newGate(plan Plan) *Gate {
	now := time.Now()
	return &Gate{plan: plan, seen: map[string]int{}, last: now, lastWork: now, stale: newStaleness(plan.Stale)}
}

// incarnation is one life of the operator.
type incarnation struct {
	gate  *Gate
	epoch int
	once  sync.Once
	dead  chan struct{}
}

// begin starts an epoch. What the incarnations before it still send is lost.
// It is up when that many informers are connected.
func (g *Gate) begin(informers int) *incarnation {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.epoch++
	g.streams, g.expected = map[string]bool{}, informers
	return &incarnation{gate: g, epoch: g.epoch, dead: make(chan struct{})}
}

// die ends the incarnation: none of its requests is forwarded from here on.
func (i *incarnation) die() { i.once.Do(func() { close(i.dead) }) }

func (i *incarnation) isDead() bool {
	select {
	case <-i.dead:
		return true
	default:
		return false
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// api stands between the incarnation and the API server.
func (i *incarnation) api(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		body, err := readBody(request)
		if err != nil {
			return nil, err
		}
		kind, effect := classifyAPI(request, body)
		if i.isDead() {
			if kind == classEvent {
				// The recorder would try again for a minute after its process is
				// gone, in this one.
				return answer(request, effect, http.StatusForbidden, "Forbidden"), nil
			}
			return nil, errDead
		}
		switch kind {
		case classOther:
			return next.RoundTrip(withBody(request, body))
		case classWatch:
			return i.gate.stale.watch(request, next, func(resource string) { i.gate.told(i, resource) })
		case classEvent:
			i.gate.mu.Lock()
			i.gate.posted = append(i.gate.posted, body)
			i.gate.mu.Unlock()
			return next.RoundTrip(withBody(request, body))
		case classRead, classEffect:
		}
		request.Header.Set("Accept", readableOf(request.Header.Get("Accept")))
		return i.pass(kind, effect, request, body, next)
	})
}

// provider stands between the incarnation and the provider.
func (i *incarnation) provider(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		body, err := readBody(request)
		if err != nil {
			return nil, err
		}
		if i.isDead() {
			return nil, errDead
		}
		kind, effect := classifyProvider(request)
		return i.pass(kind, effect, request, body, next)
	})
}

// pass numbers and records a request and carries out what the plan has for it.
func (i *incarnation) pass(kind class, effect Effect, request *http.Request, body []byte, next http.RoundTripper) (*http.Response, error) {
	event, fault := i.gate.enter(i, kind, effect, request, body)
	defer i.gate.leave(event)
	forward := func() (*http.Response, error) { return i.gate.forward(event, request, body, next) }
	switch fault {
	case CrashBefore:
		i.gate.crash(i)
		return nil, errDead
	case CrashAfter:
		_, _ = forward()
		i.gate.crash(i)
		return nil, errDead
	case Zombie, ZombieRecreate:
		i.gate.park(event, request, body, next)
		i.gate.crash(i)
		return nil, errDead
	case Failed:
		return answer(request, effect, http.StatusInternalServerError, "InternalError"), nil
	case Conflict:
		return answer(request, effect, http.StatusConflict, "Conflict"), nil
	case Throttled:
		return answer(request, effect, http.StatusTooManyRequests, "TooManyRequests"), nil
	case Lost, Busy:
		if _, err := forward(); err != nil {
			return nil, err
		}
		return nil, brokenConnection()
	case Garbage:
		if _, err := forward(); err != nil {
			return nil, err
		}
		return response(request, http.StatusOK, []byte(`{"id": ["`)), nil
	case Duplicated:
		first, err := forward()
		i.gate.repeat(event, request, body, next)
		return first, err
	case Retried:
		if _, err := forward(); err != nil {
			return nil, err
		}
		return i.gate.again(event, request, body, next)
	case Hang:
		most := (<-chan time.Time)(nil)
		if !effect.Provider {
			most = time.After(apiHang)
		}
		return nil, hang(request.Context(), most, i.dead)
	case Outage:
		return nil, noConnection()
	case None:
	}
	return forward()
}

// enter records the request and tells what is to happen to it.
func (g *Gate) enter(i *incarnation, kind class, effect Effect, request *http.Request, body []byte) (*Event, Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	effect.Occurrence = g.seen[effect.Key()] + 1
	event := &Event{
		Effect: effect, Read: kind == classRead, Epoch: i.epoch, Act: g.act, Begin: g.clock, At: time.Now(),
		Path: request.URL.Path, Request: body, IdempotencyKey: request.Header.Get("Idempotency-Key"), Fault: None,
	}
	g.events = append(g.events, event)
	g.inFlight++
	g.touch(event)
	switch {
	case g.plan.Fault == Outage && g.fired && effect.Provider && g.wrong < g.plan.Fault.length():
		g.wrong++
		event.Fault = Outage
	case g.plan.Fault == Busy && g.fired && effect.Key() == g.plan.At.Key() && g.wrong < g.plan.Fault.length():
		g.wrong++
		event.Fault = Conflict
	case !g.fired && !g.disarmed && effect == g.plan.At:
		g.fired = true
		g.wrong = 1
		event.Fault = g.plan.Fault
	}
	return event, event.Fault
}

func (g *Gate) leave(event *Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	event.End = g.clock
	g.inFlight--
	if event.counts() && !event.Extra {
		g.seen[event.Effect.Key()] = max(g.seen[event.Effect.Key()], event.Effect.Occurrence)
	}
	g.touch(event)
}

// told notes that an informer of the incarnation has connected or was told something.
func (g *Gate) told(i *incarnation, resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i.epoch == g.epoch {
		g.streams[resource] = true
		g.last = time.Now()
		g.lastWork = g.last
	}
}

// disarm gives up what was planned, if it has not happened.
func (g *Gate) disarm() {
	g.mu.Lock()
	g.disarmed = true
	g.mu.Unlock()
	g.stale.disarm()
}

// stir makes the time of rest start anew.
func (g *Gate) stir() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = time.Now()
	g.lastWork = g.last
}

// touch notes that something is going on.
func (g *Gate) touch(event *Event) {
	g.last = time.Now()
	if !event.Read {
		g.lastWork = g.last
	}
}

// forward sends the request on and records the true answer.
func (g *Gate) forward(event *Event, request *http.Request, body []byte, next http.RoundTripper) (*http.Response, error) {
	answer, err := next.RoundTrip(withBody(request, body))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	event.Status, event.Response = answer.StatusCode, content
	g.mu.Unlock()
	known := response(request, answer.StatusCode, content)
	known.Header = answer.Header
	return known, nil
}

// repeat sends a request once more and drops the answer.
func (g *Gate) repeat(event *Event, request *http.Request, body []byte, next http.RoundTripper) {
	if response, err := g.again(event, request, body, next); err == nil {
		_ = response.Body.Close()
	}
}

// again sends a request that was sent before, and records it on its own.
func (g *Gate) again(event *Event, request *http.Request, body []byte, next http.RoundTripper) (*http.Response, error) {
	g.mu.Lock()
	g.clock++
	copied := *event
	copied.Begin, copied.Extra, copied.Status, copied.Response, copied.Act = g.clock, true, 0, nil, g.act
	extra := &copied
	g.events = append(g.events, extra)
	g.inFlight++
	g.mu.Unlock()
	defer g.leave(extra)
	return g.forward(extra, request, body, next)
}

// park keeps a request for release.
func (g *Gate) park(event *Event, request *http.Request, body []byte, next http.RoundTripper) {
	late := request.Clone(context.WithoutCancel(request.Context()))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked = append(g.parked, func() { g.repeat(event, late, body, next) })
}

// release sends what is parked, and tells whether there was anything.
func (g *Gate) release() bool {
	g.mu.Lock()
	parked := g.parked
	g.parked = nil
	g.mu.Unlock()
	for _, send := range parked {
		send()
	}
	return len(parked) > 0
}

func (g *Gate) crash(i *incarnation) { i.die() }

// begun moves on to an act.
func (g *Gate) begun(act int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.act = act
}

// quiet tells whether the operator is up and nothing was under way, and no
// informer was told anything, for the given time. Reads count
// unless they come by the clock.
func (g *Gate) quiet(window time.Duration, readsCount bool) bool {
	return g.still(window, readsCount) && g.isUp()
}

// isUp tells whether all of the operator's informers are connected.
func (g *Gate) isUp() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.streams) >= g.expected
}

// still is quiet for an operator that need not be up: a frozen informer may
// keep it from that.
func (g *Gate) still(window time.Duration, readsCount bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := g.lastWork
	if readsCount {
		last = g.last
	}
	return g.inFlight == 0 && time.Since(last) >= window
}

// hasFired tells whether the planned fault has happened, and is over.
func (g *Gate) hasFired() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fired && g.wrong >= g.plan.Fault.length()
}

// trace is a copy of what has passed so far.
func (g *Gate) trace() []Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	trace := make([]Event, len(g.events))
	for i, event := range g.events {
		trace[i] = *event
	}
	return trace
}

// eventBodies are the bodies of the Kubernetes Events so far.
func (g *Gate) eventBodies() [][]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([][]byte{}, g.posted...)
}

// readableOf asks for JSON where a client would rather have protobuf, so that
// the harness can read the answer.
func readableOf(accept string) string {
	return strings.ReplaceAll(accept, "application/vnd.kubernetes.protobuf", "application/json")
}

func readBody(request *http.Request) ([]byte, error) {
	if request.Body == nil || request.Body == http.NoBody {
		return nil, nil
	}
	defer func() { _ = request.Body.Close() }()
	return io.ReadAll(request.Body)
}

// withBody is the request with a body to send, which can be done many times.
func withBody(request *http.Request, body []byte) *http.Request {
	clone := request.Clone(request.Context())
	clone.ContentLength = int64(len(body))
	clone.GetBody = nil
	clone.Body = http.NoBody
	if len(body) > 0 {
		clone.Body = io.NopCloser(bytes.NewReader(body))
	}
	return clone
}
