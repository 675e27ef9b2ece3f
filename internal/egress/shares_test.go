package egress

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// everybodys is a destination that namespaces share.
var everybodys = Destination{Name: "default endpoint"}

// simulation runs callers against Governors in time that is not real.
type simulation struct {
	t      *testing.T
	clock  *testingclock.FakePassiveClock
	events events
	serial int
}

type event struct {
	at     time.Time
	serial int
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].serial < e[j].serial
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newSimulation(t *testing.T) *simulation {
	return &simulation{t: t, clock: testingclock.NewFakePassiveClock(epoch)}
}

func (s *simulation) governor(pool *Pool, destination Destination, limits Limits) *Governor {
	g := newGovernor(s.clock, pool, nil, destination, limits)
	g.linger = 0 // is real time
	return g
}

func (s *simulation) after(d time.Duration, do func()) {
	s.serial++
	heap.Push(&s.events, event{s.clock.Now().Add(d), s.serial, do})
}

// run goes on until stop, or until nothing is left to do.
func (s *simulation) run(stop func() bool) {
	s.t.Helper()
	for len(s.events) > 0 && !stop() {
		next := heap.Pop(&s.events).(event)
		s.clock.SetTime(next.at)
		next.do()
		if s.clock.Now().Sub(epoch) > 20*time.Minute {
			s.t.Fatal("it does not come to an end")
		}
	}
}

// call makes a call that takes so long, coming back as often as it is told to.
func (s *simulation) call(g *Governor, c Call, takes time.Duration, began func()) {
	done, err := g.Admit(s.t.Context(), c)
	if err != nil {
		e := refusal(s.t, err)
		if e.Class != HeldBack || e.After <= 0 {
			s.t.Fatalf("Admit = %#v, want to be told when to come back", e)
		}
		s.after(e.After, func() { s.call(g, c, takes, began) })
		return
	}
	s.after(takes, func() { done(Answered()) })
	began()
}

// flood has many calls of a namespace made now, and each again when it has ended.
func (s *simulation) flood(g *Governor, namespace string, many int, takes time.Duration) {
	var again func(i int)
	again = func(i int) {
		s.call(g, Call{namespace, fmt.Sprint(i)}, takes, func() { s.after(takes, func() { again(i + many) }) })
	}
	for i := range many {
		again(i)
	}
}

// waits is how long the calls of a namespace wait, one after the other.
func (s *simulation) waits(g *Governor, namespace string, calls int, takes time.Duration) (longest time.Duration) {
	s.t.Helper()
	left := calls
	var next func()
	next = func() {
		asked := s.clock.Now()
		s.call(g, Call{namespace, fmt.Sprint("next ", left)}, takes, func() {
			longest = max(longest, s.clock.Now().Sub(asked))
			if left--; left > 0 {
				s.after(takes, next)
			}
		})
	}
	s.after(0, next)
	s.run(func() bool { return left == 0 })
	return longest
}

func (s *simulation) runFor(d time.Duration) {
	end := s.clock.Now().Add(d)
	s.after(d, func() {})
	s.run(func() bool { return !s.clock.Now().Before(end) })
}

func TestAFloodOfOneNamespaceDoesNotKeepAnotherFromASharedDestination(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limits Limits
		takes  time.Duration
		most   time.Duration
	}{
		// A call in each turn: its own, and one of the other's.
		"the rate is used up": {limits: Limits{QPS: 10, Burst: 5}, takes: time.Millisecond, most: 200*time.Millisecond + time.Microsecond},
		// Half of the window stays free.
		"the window is used up":                {takes: 300 * time.Millisecond, most: 0},
		"the window is used up by slow calls":  {takes: 9 * time.Second, most: 0},
		"the rate is used up by slow calls":    {limits: Limits{QPS: 2, Burst: 1}, takes: 9 * time.Second, most: time.Second + time.Microsecond},
		"the default rate is used up by quick": {takes: time.Microsecond, most: 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t)
			g := s.governor(NewPool(0), everybodys, tc.limits)
			s.flood(g, "hog", 1000, tc.takes)
			s.runFor(30 * time.Second)
			if longest := s.waits(g, "modest", 10, tc.takes); longest > tc.most {
				t.Errorf("a call of the other namespace waits up to %s, want at most %s", longest, tc.most)
			}
		})
	}
}

// With more namespaces than places nobody is let in at once, and none is left out.
func TestManyHogsTakeTurnsWithAModestNamespace(t *testing.T) {
	t.Parallel()
	const places, takes = 2 * maxWindow, time.Second
	const hogs = 3 * places
	s := newSimulation(t)
	g := s.governor(NewPool(0), everybodys, Limits{})
	for i := range hogs {
		s.flood(g, fmt.Sprint("hog ", i), 20, takes)
	}
	s.runFor(30 * time.Second)
	// A round is each hog's turn; on top comes how long a place waits for its next.
	round := hogs / places * (takes + claimLife)
	if longest := s.waits(g, "modest", 5, takes); longest > 2*round {
		t.Errorf("a call waits up to %s, want about one round, %s", longest, round)
	}
}

// Whoever needs two calls a pass, as a deletion does, must come to an end also
// where namespaces share the destination, and others come with more than it takes.
func TestPassesOfTwoCallsEndBesideAFlood(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	g := s.governor(NewPool(0), everybodys, Limits{QPS: 10, Burst: 1})
	s.flood(g, "hog", 300, time.Millisecond)
	s.runFor(time.Minute)
	ended := 0
	const passes = 20
	for i := range passes {
		var pass func()
		pass = func() {
			for _, method := range []string{"DELETE", "GET"} {
				done, err := g.Admit(t.Context(), Call{"modest", fmt.Sprint(method, i)})
				if err != nil {
					s.after(max(refusal(t, err).After, time.Millisecond), pass)
					return
				}
				done(Answered())
			}
			ended++
		}
		s.after(0, pass)
	}
	began := s.clock.Now()
	s.run(func() bool { return ended == passes })
	if took := s.clock.Now().Sub(began); took > time.Minute {
		t.Errorf("%d passes took %s", passes, took)
	}
}

func TestAFloodAloneGetsTheWholeRateOfASharedDestination(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	g := s.governor(NewPool(0), everybodys, Limits{QPS: 100, Burst: 10})
	began := 0
	for i := range 1000 {
		s.call(g, Call{"only", fmt.Sprint(i)}, time.Millisecond, func() { began++ })
	}
	s.runFor(10 * time.Second)
	if began < 950 {
		t.Errorf("%d calls were made in 10 s, want about 1000", began)
	}
}

func TestThePoolSharesCallsInFlightByNamespace(t *testing.T) {
	t.Parallel()
	for hogs, share := range map[int]int{1: 64, 3: 32, 7: 16, 127: 1} {
		t.Run(fmt.Sprint(hogs, " hogs"), func(t *testing.T) {
			t.Parallel()
			pool := NewPool(128)
			for range 128 {
				for hog := range hogs {
					pool.take(fmt.Sprint("hog ", hog), epoch)
				}
			}
			for hog := range hogs {
				if got := pool.shares.by[fmt.Sprint("hog ", hog)]; got < share-1 || got > share+1 {
					t.Errorf("hog %d of %d has %d calls in flight, want about %d", hog, hogs, got, share)
				}
			}
			if !pool.take("modest", epoch.Add(time.Hour)) {
				t.Error("there is no room for another namespace")
			}
		})
	}
}

// T2 of the tenants' cases: however many slow destinations a namespace has, one of
// another is as quick as alone.
func TestSlowDestinationsOfOneNamespaceDoNotDelayAnother(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ destinations, calls int }{
		"2 of 50": {2, 50}, "3 of 50": {3, 50}, "20 of 4": {20, 4}, "100 of 2": {100, 2}, "1 of 200": {1, 200}, "300 of 3": {300, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t)
			pool := NewPool(0)
			for i := range tc.destinations {
				s.flood(s.governor(pool, Destination{"evil", fmt.Sprint(i)}, Limits{}), "evil", tc.calls, 9*time.Second)
			}
			s.runFor(time.Minute)
			good := s.governor(pool, Destination{"good", "default"}, Limits{})
			if longest := s.waits(good, "good", 50, 10*time.Millisecond); longest > 0 {
				t.Errorf("a call of the other namespace waits up to %s, want none to", longest)
			}
		})
	}
}

// A call that hangs is one of two at first, as it is at a destination of its own.
func TestOneCallThatHangsKeepsNoOtherOfItsNamespaceFromASharedDestination(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	g := s.governor(NewPool(0), everybodys, Limits{})
	if _, err := g.Admit(t.Context(), Call{"only", "hangs"}); err != nil {
		t.Fatal(err)
	}
	if longest := s.waits(g, "only", 5, 10*time.Millisecond); longest > 0 {
		t.Errorf("another call waits %s", longest)
	}
}

func TestACallThatThePoolRefusesIsToldWhenToComeBack(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	pool := NewPool(2)
	first, second := s.governor(pool, Destination{"a", "1"}, Limits{}), s.governor(pool, Destination{"a", "2"}, Limits{QPS: 1, Burst: 1})
	done, err := first.Admit(t.Context(), Call{"a", "1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.Admit(t.Context(), Call{"a", "2"})
	if e := refusal(t, err); e.Class != HeldBack || e.Limit != LimitNamespace || e.After < minBusy || e.After > maxBusy {
		t.Fatalf("Admit = %#v, want to be told that the namespace has enough", e)
	}
	done(Answered())
	if _, err := second.Admit(t.Context(), Call{"a", "2"}); err != nil {
		t.Errorf("once the other has ended: %v; the refusal must have used up no token", err)
	}
}

func TestACallThatTheRateRefusesKeepsNoPlace(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	pool := NewPool(0)
	g := s.governor(pool, own, Limits{QPS: 1, Burst: 1})
	for i := range 10 {
		admit(t, g, fmt.Sprint(i), Answered())
	}
	if pool.shares.taken != 0 || len(pool.shares.by) != 0 || g.places.taken != 0 {
		t.Errorf("%d places are taken by no call", pool.shares.taken)
	}
}

func TestSlowCallsOfOneNamespaceHoldBackNoOtherAtASharedDestination(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	g := s.governor(NewPool(0), everybodys, Limits{})
	s.flood(g, "quick", 4, 10*time.Millisecond)
	s.runFor(time.Second)
	s.flood(g, "slow", 100, 9*time.Second)
	s.runFor(2 * time.Second)
	if got := g.places.by["slow"]; got < slowWindow {
		t.Fatalf("%d slow calls are in flight, want at least %d", got, slowWindow)
	}
	before := g.places.by["slow"]
	if _, err := g.Admit(t.Context(), Call{"slow", "one more"}); refusal(t, err).Limit != LimitWindow {
		t.Errorf("Admit = %v, want no room beside %d slow calls", err, before)
	}
	if longest := s.waits(g, "other", 20, 10*time.Millisecond); longest > 0 {
		t.Errorf("a call of another namespace waits %s", longest)
	}
}
