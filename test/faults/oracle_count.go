package faults

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"strings"
	"time"
)

// boundedEffects: no more was created or deleted than without faults, and for
// what the user has done besides.
func boundedEffects(r *Execution) []string {
	if r.reference == nil {
		return nil
	}
	counts := map[string]int{}
	for _, event := range r.gate.trace() {
		verb := event.Effect.Verb
		if !event.Outside() && !event.Extra && event.Status > 0 && event.Status < 300 && (verb == http.MethodPost || verb == http.MethodDelete) {
			counts[event.Effect.Name()]++
		}
	}
	maps.Copy(counts, r.Outside.Tally().Done)
	var found []string
	for key, n := range counts {
		if most := r.reference.allowed(r.Scenario, key, r.plan.lastAct()) + r.allowance[key]; n > most {
			found = append(found, fmt.Sprintf("%s was done %d times, at most %d without faults", key, n, most))
		}
	}
	return found
}

// lastAct is the last act that is played before the teardown.
func (p Plan) lastAct() int {
	if p.faultless() {
		return math.MaxInt
	}
	return p.Act
}

// nothingRoundTheGate: the outside has got the calls that the gate has let
// through, and no other.
func nothingRoundTheGate(r *Execution) []string {
	passed, cutOff := map[string]int{}, map[string]int{}
	for _, event := range r.gate.trace() {
		call := string(event.Effect.Port) + " " + event.Effect.Verb
		switch {
		case !event.Outside():
		case event.Status > 0:
			passed[call]++
		case event.Fault == None:
			cutOff[call]++ // when its incarnation stopped: it may have arrived
		}
	}
	came := r.Outside.Tally().Arrived
	calls := maps.Clone(passed)
	maps.Copy(calls, came)
	var found []string
	for call := range calls {
		if came[call] > passed[call]+cutOff[call] || came[call] < passed[call] {
			found = append(found, fmt.Sprintf("%s: %d calls came to the outside, %d passed the gate", call, came[call], passed[call]))
		}
	}
	return append(found, r.foreignWrites()...)
}

// foreignWrites: each version of an object whose last writer was the operator is
// one that the gate has seen written.
func (r *Execution) foreignWrites() []string {
	written := map[string]bool{}
	unanswered := false
	for _, event := range r.gate.trace() {
		if event.Outside() || event.Read {
			continue
		}
		unanswered = unanswered || event.Status == 0 && event.Fault == None
		object := MetadataOf(event.Response)
		written[object.UID+"@"+object.ResourceVersion] = true
	}
	if unanswered {
		return nil
	}
	var found []string
	managed := map[string]string{}
	for _, revision := range r.recorder.revisions() {
		uid := string(revision.Object.GetUID())
		var mine strings.Builder
		for _, entry := range revision.Object.GetManagedFields() {
			if entry.Manager == r.adapter.FieldManager {
				fmt.Fprint(&mine, entry.Operation, entry.Subresource, entry.Time, string(entry.FieldsV1.GetRawBytes()))
			}
		}
		before := managed[uid]
		managed[uid] = mine.String()
		if mine.String() == "" || mine.String() == before || len(mine.String()) < len(before) || revision.Deleted {
			continue
		}
		if !written[uid+"@"+revision.Object.GetResourceVersion()] {
			found = append(found, fmt.Sprintf("%s %s was written by the operator at version %s, and not through the gate",
				revision.Resource, revision.Object.GetName(), revision.Object.GetResourceVersion()))
		}
	}
	return found
}

// retryLaw: failing attempts become rarer, and a Retry-After is honoured.
func retryLaw(r *Execution) []string {
	var found []string
	trace := r.gate.trace()
	for i, event := range trace {
		if event.Fault != Throttled || !event.Outside() {
			continue
		}
		for _, later := range trace[i+1:] {
			if later.Effect.Name() == event.Effect.Name() && later.Path == event.Path && later.Epoch == event.Epoch {
				if gap := later.At.Sub(event.At); gap < time.Second {
					found = append(found, fmt.Sprintf("%s was told to come back after 1s and came after %s", later, gap))
				}
				break
			}
		}
	}
	if r.plan.Fault == Outage {
		var attempts []Event
		for _, event := range trace {
			if event.Fault == Outage {
				attempts = append(attempts, event)
			}
		}
		if n := len(attempts); n > 1 {
			elapsed := attempts[n-1].At.Sub(attempts[0].At)
			// 10 ms, doubling; two passes more for what watches may have told of.
			if most := 3 + math.Log2(1+float64(elapsed/minBackoff)); float64(n) > most {
				found = append(found, fmt.Sprintf("%d attempts at a dead outside within %s", n, elapsed))
			}
		}
	}
	return found
}
