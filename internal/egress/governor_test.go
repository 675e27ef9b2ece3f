package egress

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// own is a destination of a tenant's.
var own = Destination{Namespace: "a", Name: "default"}

// newTestGovernor is that of a tenant's destination.
func newTestGovernor(limits Limits) (*Governor, *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(epoch)
	return newGovernor(clock, NewPool(0), nil, own, limits), clock
}

// call is a call of the owner of a destination.
func call(name string) Call { return Call{Namespace: own.Namespace, Name: name} }

// refusal is err as an *Error.
func refusal(t *testing.T, err error) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error = %v, want an *Error", err)
	}
	return e
}

// admit makes a call that ends at once with result, and tells when to come
// back if it may not be made.
func admit(t *testing.T, g *Governor, name string, result Outcome) time.Duration {
	t.Helper()
	done, err := g.Admit(t.Context(), call(name))
	if err == nil {
		done(result)
		return 0
	}
	e := refusal(t, err)
	if e.Class != HeldBack || e.After <= 0 || e.Limit == "" {
		t.Fatalf("Admit(%q) = %#v, want a refusal that tells when to come back", name, e)
	}
	return e.After
}

// warmUp has the provider answer as often as lets in the most calls.
func warmUp(t *testing.T, g *Governor) {
	t.Helper()
	for i := range maxWindow {
		admit(t, g, fmt.Sprint("warm-up ", i), Answered())
	}
}

func TestWhatAnOldTargetSaysDoesNotHoldForTheNew(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]Outcome{
		"it wants quiet": AnsweredQuiet(time.Hour), "it is dead": Failed(errors.New("refused")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, _ := newTestGovernor(Limits{})
			g.retarget("http://old", nil)
			warmUp(t, g)
			var late []func(Outcome)
			for i := range failuresToOpen {
				done, err := g.Admit(t.Context(), call(fmt.Sprint(i)))
				if err != nil {
					t.Fatal(err)
				}
				late = append(late, done)
			}
			g.retarget("http://new", nil)
			for _, done := range late {
				done(outcome)
			}
			if after := admit(t, g, "x", Answered()); after > 0 {
				t.Errorf("a call to the new target has to wait for %s", after)
			}
		})
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
		if after := admit(t, g, ticket, Answered()); after > 0 {
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
		if after := admit(t, g, w.ticket, Answered()); after != 0 {
			t.Fatalf("%s came back in time and was told to wait %s more", w.ticket, after)
		}
	}
}

func TestGovernorTellsTheSameTimeToWhoeverComesBackEarly(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{QPS: 1, Burst: 1})
	admit(t, g, "first", Answered())
	if after := admit(t, g, "second", Answered()); after != time.Second {
		t.Fatalf("After = %s, want 1s", after)
	}
	clock.SetTime(epoch.Add(400 * time.Millisecond))
	if after := admit(t, g, "second", Answered()); after != 600*time.Millisecond {
		t.Fatalf("After = %s, want what is left of the same second", after)
	}
}

func TestGovernorForgetsTicketsThatNobodyComesBackWith(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{QPS: 100, Burst: 1})
	for i := range 100 {
		admit(t, g, fmt.Sprint(i), Answered())
	}
	clock.SetTime(epoch.Add(3 * ticketLife))
	admit(t, g, "another", Answered())
	if len(g.queue.tickets) != 0 {
		t.Fatalf("%d tickets are kept, want none", len(g.queue.tickets))
	}
}

func TestGovernorFollowsChangedLimitsAtOnce(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{QPS: 1, Burst: 1})
	for i := range 100 {
		admit(t, g, fmt.Sprint(i), Answered())
	}
	g.setLimits(Limits{QPS: 100, Burst: 1})
	var told []time.Duration
	for i := range 100 {
		if after := admit(t, g, fmt.Sprint(i), Answered()); after > 0 {
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
		if after := admit(t, g, fmt.Sprint(i), Answered()); after != 0 {
			t.Fatalf("call %d of the burst was told to wait %s", i, after)
		}
		g.setLimits(Limits{QPS: defaultQPS, Burst: defaultBurst})
	}
	if after := admit(t, g, "one more", Answered()); after == 0 {
		t.Fatal("setting the same limits again gave a new burst")
	}
}

func TestGovernorBoundsCallsInFlight(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	warmUp(t, g)
	var ends []func(Outcome)
	for i := range maxWindow {
		done, err := g.Admit(t.Context(), call(fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		ends = append(ends, done)
	}
	_, err := g.Admit(t.Context(), call("one more"))
	if e := refusal(t, err); e.Class != HeldBack || e.Limit != LimitWindow || e.After < minBusy || e.After > minBusy+maxBusy {
		t.Fatalf("Admit = %#v, want no room in the window", e)
	}

	// The calls turn out to be slow: fewer are let in from here on.
	clock.SetTime(epoch.Add(slowCall))
	for _, done := range ends[:maxWindow-slowWindow] {
		done(Answered())
	}
	if _, err := g.Admit(t.Context(), call("one more")); refusal(t, err).Limit != LimitWindow {
		t.Fatalf("Admit = %v, want no room while %d slow calls are in flight", err, slowWindow)
	}
	ends[len(ends)-1](Answered())
	clock.SetTime(epoch.Add(slowCall + minBusy + maxBusy))
	if after := admit(t, g, "one more", Answered()); after != 0 {
		t.Fatalf("the call was told to wait %s although there is room", after)
	}
}

func TestGovernorLetsFewCallsToAProviderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	under := func() (ends []func(Outcome)) {
		t.Helper()
		for i := 0; ; i++ {
			done, err := g.Admit(t.Context(), call(fmt.Sprint(i)))
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
		done(Answered())
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	more := under()
	if len(more) != 2*firstWindow {
		t.Fatalf("%d calls are let in after %d answers, want %d", len(more), firstWindow, 2*firstWindow)
	}
	more[0](unreachable("it hangs"))
	more[1](unreachable("it hangs"))
	for _, done := range more[2:] {
		done(Outcome{}) // which tells nothing
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	if left := under(); len(left) != 1 {
		t.Fatalf("%d calls are let in after 2 hung, want 1", len(left))
	}
}

func TestGovernorLetsACallWaitForOneThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	first, err := g.Admit(t.Context(), call("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admit(t.Context(), call("second")); err != nil {
		t.Fatal(err)
	}
	admitted := make(chan error)
	go func() {
		for {
			_, err := g.Admit(t.Context(), call("third"))
			if err == nil || refusal(t, err).Limit != LimitWindow {
				admitted <- err
				return
			}
		}
	}()
	first(Answered())
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
}

func TestGovernorDoneCountsOnce(t *testing.T) {
	t.Parallel()
	g, _ := newTestGovernor(Limits{})
	done, err := g.Admit(t.Context(), call("a"))
	if err != nil {
		t.Fatal(err)
	}
	for range failuresToOpen {
		done(unreachable("down"))
	}
	if after := admit(t, g, "b", Answered()); after != 0 {
		t.Fatal("one failed call counted more than once")
	}
}

func TestGovernorsShareByDestinationAndStartAfreshWhenForgotten(t *testing.T) {
	t.Parallel()
	governors := Governors{Clock: testingclock.NewFakePassiveClock(epoch)}
	a := governors.For(Target{Destination: own, Address: "http://one.example"})
	if governors.For(Target{Destination: own, Address: "http://one.example"}) != a {
		t.Fatal("the same Destination got another Governor")
	}
	if governors.For(Target{Destination: Destination{Namespace: "b", Name: own.Name}}) == a {
		t.Fatal("another Destination got the same Governor")
	}
	open(t, a)
	if _, err := a.Admit(t.Context(), call("x")); err == nil {
		t.Fatal("the circuit is not open")
	}
	governors.For(Target{Destination: own, Address: "http://two.example"})
	if after := admit(t, a, "x", Answered()); after != 0 {
		t.Fatal("a corrected endpoint has to wait for the circuit of the old one")
	}
	governors.Forget(own)
	if governors.For(Target{Destination: own}) == a {
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
		for _, method := range []string{"DELETE", "GET"} {
			done, err := g.Admit(t.Context(), call(fmt.Sprintf("%s %d ", method, who)))
			if e, ok := errors.AsType[*Error](err); ok {
				next[who], ended = clock.Now().Add(max(e.After, time.Millisecond)), false
				break
			}
			done(Answered())
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
	target := Target{Destination: own, Address: "https://provider.test", Credentials: map[string][]byte{"apiKey": []byte("wrong")}}
	governors := Governors{Clock: testingclock.NewFakePassiveClock(epoch)}
	admit(t, governors.For(target), "one", AnsweredQuiet(time.Hour))
	if after := admit(t, governors.For(target), "two", Answered()); after != time.Hour {
		t.Errorf("with the same credentials it may call in %s, want an hour", after)
	}
	governors.For(Target{Address: target.Address}) // is nobody's
	if after := admit(t, governors.For(target), "two", Answered()); after != time.Hour {
		t.Errorf("when somebody has looked at the endpoint it may call in %s, want an hour", after)
	}
	target.Credentials = map[string][]byte{"apiKey": []byte("right")}
	if after := admit(t, governors.For(target), "two", Answered()); after != 0 {
		t.Errorf("with the right credentials it may call in %s, want at once", after)
	}
}
