package faults

import (
	"bytes"
	"context"
	"io"
	"net"
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
	// Path is the URL's, empty for what is not HTTP.
	Path string
	// Request is what was sent: of HTTP the body.
	Request []byte
	// Mark is the owner's mark that it bears.
	Mark string
	// Status and Response are the true answer; the status is 0 when the request
	// was not forwarded. Where there is no HTTP, 200 stands for done, 500 for refused.
	Status   int
	Response []byte
	// Fault is what the gate did to it.
	Fault Fault
	// Extra is true for a request that the harness repeated or delayed.
	Extra bool
}

// Outside tells whether it went to the outside, not to the API server.
func (e *Event) Outside() bool { return e.Effect.Port != API }

// Succeeded tells whether it was carried out.
func (e *Event) Succeeded() bool { return e.Status > 0 && e.Status < 300 }

// counts tells whether the event moves the occurrence of its like on. A write
// that the API server refused does not: how often a pass works on a state that
// has just changed is a matter of time.
func (e *Event) counts() bool {
	return e.Outside() || e.Read || e.Fault != None || e.Succeeded()
}

// Gate stands between the incarnations of the operator on one side and the API
// server and the outside on the other. It numbers requests, records them, and
// makes the planned one fail. See life.go and tcp.go for what stands in the way
// of the requests.
type Gate struct {
	plan Plan

	mu       sync.Mutex
	act      int
	clock    int
	epoch    int
	seen     map[string]int
	events   []*Event
	posted   [][]byte // bodies of Kubernetes Events
	struck   *Event   // what went wrong first, as planned
	second   *Event   // what went wrong after that
	disarmed bool
	wrong    int // requests that went wrong so far by the first fault
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

// begin starts an epoch. What the incarnations before it still send is lost.
// It is up when that many informers are connected.
func (g *Gate) begin(informers int) *Life {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.epoch++
	g.streams, g.expected = map[string]bool{}, informers
	return &Life{gate: g, epoch: g.epoch, dead: make(chan struct{}), open: map[net.Conn]bool{}}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// enter records the request and tells what is to happen to it.
func (g *Gate) enter(l *Life, call Call, path string, body []byte) (*Event, Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	call.Effect.Occurrence = g.seen[call.Effect.Name()] + 1
	event := &Event{
		Effect: call.Effect, Read: call.Read, Epoch: l.epoch, Act: g.act, Begin: g.clock, At: time.Now(),
		Path: path, Request: body, Mark: call.Mark, Fault: None,
	}
	g.events = append(g.events, event)
	g.inFlight++
	g.touch(event)
	event.Fault = g.faultFor(event)
	return event, event.Fault
}

// faultFor is what is planned for a request.
func (g *Gate) faultFor(event *Event) Fault {
	going := g.struck != nil && g.wrong < g.plan.Fault.length()
	switch {
	case going && g.plan.Fault == Outage && event.Outside():
		g.wrong++
		return Outage
	case going && g.plan.Fault == Busy && event.Effect.Name() == g.plan.At.Name():
		g.wrong++
		return Conflict
	case g.struck == nil && !g.disarmed && event.Effect == g.plan.At:
		g.struck, g.wrong = event, 1
		return g.plan.Fault
	case g.recovers(event):
		g.second = event
		return g.plan.Then
	}
	return None
}

// recovers tells whether the request is the first effect of the recovery from
// the first fault: of the successor of an incarnation that died of it, or of
// whatever the operator does once it has met with it.
func (g *Gate) recovers(event *Event) bool {
	if g.plan.Then == "" || g.struck == nil || g.second != nil || g.disarmed || event.Read {
		return false
	}
	if g.plan.Fault.crashes() {
		return event.Epoch > g.struck.Epoch
	}
	return g.struck.End > 0
}

func (g *Gate) leave(event *Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	event.End = g.clock
	g.inFlight--
	if event.counts() && !event.Extra {
		g.seen[event.Effect.Name()] = max(g.seen[event.Effect.Name()], event.Effect.Occurrence)
	}
	g.touch(event)
}

// told notes that an informer of the incarnation has connected or was told something.
func (g *Gate) told(l *Life, resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.epoch == g.epoch {
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
	g.answered(event, answer.StatusCode, content)
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
	extra := g.extra(event)
	defer g.leave(extra)
	return g.forward(extra, request, body, next)
}

// extra records a request that the harness sends.
func (g *Gate) extra(event *Event) *Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	extra := *event
	extra.Begin, extra.End, extra.Extra, extra.Status, extra.Response, extra.Act = g.clock, 0, true, 0, nil, g.act
	g.events = append(g.events, &extra)
	g.inFlight++
	return &extra
}

// parkRequest keeps an HTTP request for release.
func (g *Gate) parkRequest(event *Event, request *http.Request, body []byte, next http.RoundTripper) {
	late := request.Clone(context.WithoutCancel(request.Context()))
	g.park(func() { g.repeat(event, late, body, next) })
}

// park keeps what sends a request for release.
func (g *Gate) park(send func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parked = append(g.parked, send)
}

// answered records the true answer to a request.
func (g *Gate) answered(event *Event, status int, response []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	event.Status, event.Response = status, response
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
	return g.struck != nil && g.wrong >= g.plan.Fault.length()
}

// hasStruckTwice tells whether the second fault of a pair has happened.
func (g *Gate) hasStruckTwice() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.second != nil
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
