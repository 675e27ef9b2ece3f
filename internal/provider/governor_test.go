package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newTestGovernor(limits Limits) (*Governor, *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(epoch)
	return NewGovernor(clock, limits, 0), clock
}

// admit makes a call that ends at once with result, and tells when to come
// back if it may not be made.
func admit(t *testing.T, g *Governor, ticket string, result error) time.Duration {
	t.Helper()
	done, err := g.Admit(t.Context(), ticket)
	if err == nil {
		done(result)
		return 0
	}
	e := AsError(err)
	if e.Class != Throttled || !e.Refused || e.After <= 0 || e.Reason == "" {
		t.Fatalf("Admit(%q) = %#v, want a refusal that tells when to come back", ticket, e)
	}
	return e.After
}

// warmUp has the provider answer as often as lets in the most calls.
func warmUp(t *testing.T, g *Governor) {
	t.Helper()
	for i := range g.maxInFlight {
		admit(t, g, fmt.Sprint("warm-up ", i), nil)
	}
}

func TestGovernorTellsEachOfManyAnotherTimeAndKeepsIt(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{QPS: 10, Burst: 2})
	type waiting struct {
		ticket string
		at     time.Time
	}
	var queue []waiting
	for i := range 50 {
		ticket := fmt.Sprintf("POST /buckets %d", i)
		if after := admit(t, g, ticket, nil); after > 0 {
			queue = append(queue, waiting{ticket, clock.Now().Add(after)})
		}
	}
	if len(queue) != 48 {
		t.Fatalf("%d calls wait, want 48: all but the burst", len(queue))
	}
	for i, w := range queue {
		// The limiter counts tokens in floating point.
		if want := epoch.Add(time.Duration(i+1) * 100 * time.Millisecond); !w.at.Round(time.Microsecond).Equal(want) {
			t.Fatalf("call %d was told to come at %s, want %s", i, w.at, want)
		}
	}
	for _, w := range queue {
		clock.SetTime(w.at)
		if after := admit(t, g, w.ticket, nil); after != 0 {
			t.Fatalf("%s came back in time and was told to wait %s more", w.ticket, after)
		}
	}
}

func TestGovernorTellsTheSameTimeToWhoeverComesBackEarly(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{QPS: 1, Burst: 1})
	admit(t, g, "first", nil)
	if after := admit(t, g, "second", nil); after != time.Second {
		t.Fatalf("After = %s, want 1s", after)
	}
	clock.SetTime(epoch.Add(400 * time.Millisecond))
	if after := admit(t, g, "second", nil); after != 600*time.Millisecond {
		t.Fatalf("After = %s, want what is left of the same second", after)
	}
}

func TestGovernorForgetsTicketsThatNobodyComesBackWith(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{QPS: 100, Burst: 1})
	for i := range 100 {
		admit(t, g, fmt.Sprint(i), nil)
	}
	clock.SetTime(epoch.Add(3 * ticketLife))
	admit(t, g, "another", nil)
	if len(g.tickets) != 0 {
		t.Fatalf("%d tickets are kept, want none", len(g.tickets))
	}
}

func TestGovernorFollowsChangedLimitsAtOnce(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{QPS: 1, Burst: 1})
	for i := range 100 {
		admit(t, g, fmt.Sprint(i), nil)
	}
	g.SetLimits(Limits{QPS: 100, Burst: 1})
	var told []time.Duration
	for i := range 100 {
		if after := admit(t, g, fmt.Sprint(i), nil); after > 0 {
			told = append(told, after)
		}
	}
	if longest := slices.Max(told); longest > 1100*time.Millisecond {
		t.Fatalf("a call has to wait %s; 100 calls at 100 a second need about one", longest)
	}
}

func TestGovernorKeepsUnchangedLimits(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	for i := range defaultBurst {
		if after := admit(t, g, fmt.Sprint(i), nil); after != 0 {
			t.Fatalf("call %d of the burst was told to wait %s", i, after)
		}
		g.SetLimits(Limits{QPS: defaultQPS, Burst: defaultBurst})
	}
	if after := admit(t, g, "one more", nil); after == 0 {
		t.Fatal("setting the same limits again gave a new burst")
	}
}

func TestGovernorBoundsCallsInFlight(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	warmUp(t, g)
	var ends []func(error)
	for i := range g.maxInFlight {
		done, err := g.Admit(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		ends = append(ends, done)
	}
	_, err := g.Admit(t.Context(), "one more")
	if e := AsError(err); e.Reason != "ProviderBusy" || e.Class != Throttled || !e.Refused || e.After < minBusy || e.After > minBusy+maxBusy {
		t.Fatalf("Admit = %#v, want ProviderBusy", e)
	}

	// The calls turn out to be slow: fewer are let in from here on.
	clock.SetTime(epoch.Add(slowCall))
	for _, done := range ends[:g.maxInFlight-g.maxInFlightSlow] {
		done(nil)
	}
	if _, err := g.Admit(t.Context(), "one more"); AsError(err).Reason != "ProviderBusy" {
		t.Fatalf("Admit = %v, want ProviderBusy while %d slow calls are under way", err, g.maxInFlightSlow)
	}
	ends[len(ends)-1](nil)
	clock.SetTime(epoch.Add(slowCall + minBusy + maxBusy))
	if after := admit(t, g, "one more", nil); after != 0 {
		t.Fatalf("the call was told to wait %s although there is room", after)
	}
}

func TestGovernorLetsFewCallsToAProviderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	under := func() (ends []func(error)) {
		t.Helper()
		for i := 0; ; i++ {
			done, err := g.Admit(t.Context(), fmt.Sprint(i))
			if err != nil {
				return ends
			}
			ends = append(ends, done)
		}
	}
	first := under()
	if len(first) != firstWindow {
		t.Fatalf("%d calls are let in to a provider that was not heard of, want %d", len(first), firstWindow)
	}
	for _, done := range first {
		done(nil)
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	more := under()
	if len(more) != 2*firstWindow {
		t.Fatalf("%d calls are let in after %d answers, want %d", len(more), firstWindow, 2*firstWindow)
	}
	more[0](unreachable("it hangs"))
	more[1](unreachable("it hangs"))
	for _, done := range more[2:] {
		done(context.Canceled) // which tells nothing
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	if left := under(); len(left) != 1 {
		t.Fatalf("%d calls are let in after 2 hung, want 1", len(left))
	}
}

func TestGovernorLetsACallWaitForOneThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	first, err := g.Admit(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admit(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	admitted := make(chan error)
	go func() {
		for {
			_, err := g.Admit(t.Context(), "third")
			if err == nil || AsError(err).Reason != "ProviderBusy" {
				admitted <- err
				return
			}
		}
	}()
	first(nil)
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
}

func TestGovernorDoneCountsOnce(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	done, err := g.Admit(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for range failuresToOpen {
		done(unreachable("down"))
	}
	if after := admit(t, g, "b", nil); after != 0 {
		t.Fatal("one failed call counted more than once")
	}
}

func unreachable(message string) error {
	return &Error{Class: Transient, Reason: "ProviderUnavailable", Message: message, Cause: ErrUnreachable}
}

// open makes the circuit of g open.
func open(t *testing.T, g *Governor) {
	t.Helper()
	for i := range failuresToOpen {
		done, err := g.Admit(t.Context(), fmt.Sprint(i))
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		done(unreachable("connecting was refused"))
	}
}

func TestCircuitOpensAfterFailuresInARowAndRepeatsTheLast(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	open(t, g)
	_, err := g.Admit(t.Context(), "another")
	e := AsError(err)
	if e.Class != Transient || e.Reason != "ProviderUnavailable" || e.Message != "connecting was refused" || !e.Refused {
		t.Fatalf("Admit = %#v, want the last failure, refused", e)
	}
}

func TestCircuitStaysClosed(t *testing.T) {
	t.Parallel()
	results := map[string]error{
		"after an answer":            nil,
		"after an error that is one": &Error{Class: Transient, Reason: "ProviderUnavailable"},
		"after a refusal":            &Error{Class: Terminal},
	}
	for name, answer := range results {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := newTestGovernor(Limits{})
			for range 3 * failuresToOpen {
				admit(t, g, "a", unreachable("down"))
				admit(t, g, "b", unreachable("down"))
				admit(t, g, "c", answer)
			}
		})
	}
}

func TestCircuitLearnsNothingFromCallsThatWereGivenUp(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	for range 3 * failuresToOpen {
		admit(t, g, "a", context.Canceled)
	}
	open(t, g)
	clock.SetTime(epoch.Add(minCoolDown))
	done, err := g.Admit(t.Context(), "trial")
	if err != nil {
		t.Fatal(err)
	}
	done(&Error{Class: Transient, Reason: "Canceled", Cause: context.Canceled})
	done, err = g.Admit(t.Context(), "second trial")
	if err != nil {
		t.Fatalf("a trial that was given up keeps others out: %v", err)
	}
	done(nil)
}

func TestCircuitTriesOneCallAtATimeAndWaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	open(t, g)
	for _, coolDown := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		clock.SetTime(clock.Now().Add(coolDown*time.Second - 1))
		if _, err := g.Admit(t.Context(), "early"); err == nil {
			t.Fatalf("a call was let in before %d s were over", coolDown)
		}
		clock.SetTime(clock.Now().Add(1))
		done, err := g.Admit(t.Context(), "trial")
		if err != nil {
			t.Fatalf("after %d s no trial was let in: %v", coolDown, err)
		}
		if _, err := g.Admit(t.Context(), "beside the trial"); !errors.Is(err, ErrTransient) {
			t.Fatalf("Admit = %v, want one trial at a time", err)
		}
		done(unreachable("still down"))
	}
	clock.SetTime(clock.Now().Add(maxCoolDown))
	done, err := g.Admit(t.Context(), "trial")
	if err != nil {
		t.Fatal(err)
	}
	done(nil)
	for i := range 3 {
		if after := admit(t, g, fmt.Sprint("after ", i), nil); after != 0 {
			t.Fatal("the circuit did not close")
		}
	}
}

func TestCircuitIgnoresFailuresOfCallsFromBeforeItOpened(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(epoch)
	g := NewGovernor(clock, Limits{}, 32)
	warmUp(t, g)
	var late []func(error)
	for i := range 3 {
		done, err := g.Admit(t.Context(), fmt.Sprint("late ", i))
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, done)
	}
	open(t, g)
	for _, done := range late {
		done(unreachable("down"))
	}
	clock.SetTime(epoch.Add(minCoolDown))
	if _, err := g.Admit(t.Context(), "trial"); err != nil {
		t.Fatalf("late failures made the cool-down longer: %v", err)
	}
}

func TestGovernorsShareByOwnerAndStartAfreshWhenForgotten(t *testing.T) {
	t.Parallel()
	governors := Governors{Clock: testingclock.NewFakePassiveClock(epoch)}
	a := governors.For(Config{Owner: "a", Endpoint: "http://one.example"})
	if governors.For(Config{Owner: "a", Endpoint: "http://one.example"}) != a {
		t.Fatal("the same Owner got another Governor")
	}
	if governors.For(Config{Owner: "b"}) == a {
		t.Fatal("another Owner got the same Governor")
	}
	open(t, a)
	if _, err := a.Admit(t.Context(), "x"); err == nil {
		t.Fatal("the circuit is not open")
	}
	governors.For(Config{Owner: "a", Endpoint: "http://two.example"})
	if after := admit(t, a, "x", nil); after != 0 {
		t.Fatal("a corrected endpoint has to wait for the circuit of the old one")
	}
	governors.Forget("a")
	if governors.For(Config{Owner: "a"}) == a {
		t.Fatal("a forgotten Governor came back")
	}
}

// Whoever needs two calls a pass, as a deletion does, must come to an end.
func TestPassesOfTwoCallsEndUnderALowLimit(t *testing.T) {
	t.Parallel()
	const many = 150
	g, clock := newTestGovernor(Limits{QPS: 1, Burst: 1})
	start := clock.Now()
	next := map[int]time.Time{}
	for i := range many {
		next[i] = start
	}
	for len(next) > 0 {
		who, at := -1, time.Time{}
		for i, t := range next {
			if who < 0 || t.Before(at) || t.Equal(at) && i < who {
				who, at = i, t
			}
		}
		if clock.Now().Sub(start) > 2*time.Hour {
			t.Fatalf("after two hours %d of %d have not ended", len(next), many)
		}
		if at.After(clock.Now()) {
			clock.SetTime(at)
		}
		ended := true
		for _, call := range []string{"DELETE", "GET"} {
			done, err := g.Admit(t.Context(), fmt.Sprintf("%s %d ", call, who))
			if e, ok := errors.AsType[*Error](err); ok {
				next[who], ended = clock.Now().Add(max(e.After, time.Millisecond)), false
				break
			}
			done(nil)
		}
		if ended {
			delete(next, who)
		}
	}
}

// TestGovernorForgetsAWishForQuietWhenTheCredentialsChange: it was the wish
// of whoever took the former credentials for wrong.
func TestGovernorForgetsAWishForQuietWhenTheCredentialsChange(t *testing.T) {
	t.Parallel()
	config := Config{Owner: "a/default", Endpoint: "https://provider.test", Credentials: map[string][]byte{"apiKey": []byte("wrong")}}
	governors := Governors{Clock: testingclock.NewFakePassiveClock(epoch)}
	admit(t, governors.For(config), "one", &Error{Class: Throttled, Reason: "ProviderThrottled", After: time.Hour})
	if after := admit(t, governors.For(config), "two", nil); after != time.Hour {
		t.Errorf("with the same credentials it may call in %s, want an hour", after)
	}
	governors.For(Config{Endpoint: config.Endpoint}) // is nobody's
	if after := admit(t, governors.For(config), "two", nil); after != time.Hour {
		t.Errorf("when somebody has looked at the endpoint it may call in %s, want an hour", after)
	}
	config.Credentials = map[string][]byte{"apiKey": []byte("right")}
	if after := admit(t, governors.For(config), "two", nil); after != 0 {
		t.Errorf("with the right credentials it may call in %s, want at once", after)
	}
}
