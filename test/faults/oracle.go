package faults

import (
	"fmt"
	"strings"
	"sync"
)

// oracles are those that judge a history of any kind. Oracles that need the
// state at a moment call violations.add then: see oracle_state.go, oracle_rest.go
// and oracle_ready.go. The numbers are those of docs/faults.md.
var oracles = []Oracle{
	{"0 nothing goes round the gate", nothingRoundTheGate},
	{"2 no more creates and deletes than without faults", boundedEffects},
	{"5 nothing is left", nothingLeft},
	{"7 the order of finalizer, create and delete", finalizerOrder},
	{"7 no create once deletion was seen", noCreateOnceDeleted},
	{"8 preconditions and ownership", preconditions},
	{"9 no write without a change", noEmptyWrites},
	{"9 retries", retryLaw},
	{"10 observedGeneration never goes back", generationsGrow},
	{"12 no secret is told", nothingTold},
	{"12 no panic, no error on a clean run", cleanLog},
}

// violations are what the oracles have found.
type violations struct {
	mu    sync.Mutex
	found []string
}

func (v *violations) add(oracle, message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found = append(v.found, oracle+": "+message)
}

func (v *violations) all() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string{}, v.found...)
}

// violationMark begins each violation in a test's output.
const violationMark = "VIOLATED "

// report fails the test when there are any, and tells what led to them.
func (v *violations) report(r *Execution) {
	found := v.all()
	if len(found) == 0 {
		return
	}
	var out strings.Builder
	for _, message := range found {
		fmt.Fprintf(&out, "%s%s\n", violationMark, message)
	}
	fmt.Fprintf(&out, "\nplan: %s\nagain: %s -faults.plan '%s'\n\ntrace:\n", r.plan.Name(), command(), r.plan.Name())
	act := -1
	for _, event := range r.gate.trace() {
		if event.Act != act {
			act = event.Act
			fmt.Fprintf(&out, "  -- %s\n", r.Scenario.Acts[act].Name)
		}
		fmt.Fprintf(&out, "  %s\n", event)
	}
	if log := r.log.errors(); len(log) > 0 {
		fmt.Fprintf(&out, "\nthe operator's errors:\n  %s\n", strings.Join(log, "\n  "))
	}
	r.T.Error(out.String())
}

// String is a line of a trace.
func (e Event) String() string {
	var notes []string
	if e.Fault != None {
		notes = append(notes, string(e.Fault))
	}
	if e.Extra {
		notes = append(notes, "sent by the harness")
	}
	status := "not forwarded"
	if e.Status > 0 {
		status = fmt.Sprint(e.Status)
	}
	if e.Outside() {
		notes = append(notes, e.Path+" "+e.Mark)
	}
	if e.End == 0 {
		status = "under way"
	}
	body := ""
	if !e.Read && !e.Outside() && len(e.Request) > 0 {
		body = string(e.Request)
		if len(body) > 2000 {
			body = body[:2000] + "..."
		}
	}
	return fmt.Sprintf("[%d-%d] operator %d: %s -> %s %s %s", e.Begin, e.End, e.Epoch, e.Effect, status, strings.Join(notes, ", "), body)
}
