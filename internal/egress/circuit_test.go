package egress

import (
	"errors"
	"fmt"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// What evil asks for is not answered by a provider that all share; what others ask for is.
func TestASharedDestinationIsNotStoppedForOthers(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(epoch)
	g := newGovernor(clock, NewPool(0), nil, Destination{Name: "default"}, Limits{})
	g.linger = 0
	var hanging func(Outcome)
	var since time.Time
	for step := range 4 * 3600 { // evil asks each 250 ms, another each 30 s
		clock.SetTime(clock.Now().Add(250 * time.Millisecond))
		if hanging != nil && clock.Now().Sub(since) >= 10*time.Second {
			hanging(Failed(errors.New("timeout")))
			hanging = nil
		}
		if hanging == nil {
			if done, err := g.Admit(t.Context(), Call{"evil", fmt.Sprint(step)}); err == nil {
				hanging, since = done, clock.Now()
			}
		}
		if step%120 != 0 {
			continue
		}
		done, err := g.Admit(t.Context(), Call{"good", "a"})
		if err != nil {
			t.Fatalf("after %s a call for another namespace is refused: %v", clock.Now().Sub(epoch), err)
		}
		done(Answered())
	}
}

func unreachable(message string) Outcome {
	return Failed(errors.New(message))
}

// open makes the circuit of g open.
func open(t *testing.T, g *Governor) {
	t.Helper()
	for i := range failuresToOpen {
		done, err := g.Admit(t.Context(), call(fmt.Sprint(i)))
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
	_, err := g.Admit(t.Context(), call("another"))
	if e := refusal(t, err); e.Class != Unreachable || e.Err.Error() != "connecting was refused" || e.Error() != "connecting was refused" {
		t.Fatalf("Admit = %#v, want the last failure", e)
	}
}

func TestCircuitStaysClosed(t *testing.T) {
	t.Parallel()
	results := map[string]Outcome{
		"after an answer":                 Answered(),
		"after an answer that wants time": AnsweredQuiet(0),
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
		admit(t, g, "a", Outcome{})
	}
	open(t, g)
	clock.SetTime(epoch.Add(minCoolDown))
	done, err := g.Admit(t.Context(), call("trial"))
	if err != nil {
		t.Fatal(err)
	}
	done(Outcome{})
	done, err = g.Admit(t.Context(), call("second trial"))
	if err != nil {
		t.Fatalf("a trial that was given up keeps others out: %v", err)
	}
	done(Answered())
}

func TestCircuitTriesOneCallAtATimeAndWaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	open(t, g)
	for _, coolDown := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		clock.SetTime(clock.Now().Add(coolDown*time.Second - 1))
		if _, err := g.Admit(t.Context(), call("early")); err == nil {
			t.Fatalf("a call was let in before %d s were over", coolDown)
		}
		clock.SetTime(clock.Now().Add(1))
		done, err := g.Admit(t.Context(), call("trial"))
		if err != nil {
			t.Fatalf("after %d s no trial was let in: %v", coolDown, err)
		}
		if _, err := g.Admit(t.Context(), call("beside the trial")); refusal(t, err).Class != Unreachable {
			t.Fatalf("Admit = %v, want one trial at a time", err)
		}
		done(unreachable("still down"))
	}
	clock.SetTime(clock.Now().Add(maxCoolDown))
	done, err := g.Admit(t.Context(), call("trial"))
	if err != nil {
		t.Fatal(err)
	}
	done(Answered())
	for i := range 3 {
		if after := admit(t, g, fmt.Sprint("after ", i), Answered()); after != 0 {
			t.Fatal("the circuit did not close")
		}
	}
}

func TestCircuitIgnoresFailuresOfCallsFromBeforeItOpened(t *testing.T) {
	t.Parallel()
	g, clock := newTestGovernor(Limits{})
	warmUp(t, g)
	var late []func(Outcome)
	for i := range 3 {
		done, err := g.Admit(t.Context(), call(fmt.Sprint("late ", i)))
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
	if _, err := g.Admit(t.Context(), call("trial")); err != nil {
		t.Fatalf("late failures made the cool-down longer: %v", err)
	}
}
