package faults

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// boundedEffects: no more was created or deleted than without faults, and for
// what the user has done besides.
func boundedEffects(r *run) []string {
	if r.reference == nil {
		return nil
	}
	counts := map[string]int{}
	for _, event := range r.gate.trace() {
		verb := event.Effect.Verb
		if !event.Effect.Provider && !event.Extra && event.Status > 0 && event.Status < 300 && (verb == http.MethodPost || verb == http.MethodDelete) {
			counts[event.Effect.Key()]++
		}
	}
	for _, call := range r.world.Provider.Calls() {
		switch call.Outcome {
		case mockprovider.Created:
			counts[providerCreates]++
		case mockprovider.Deleted:
			counts[providerDeletes]++
		case mockprovider.Nothing, mockprovider.Replayed, mockprovider.Found, mockprovider.Absent, mockprovider.Resized:
		}
	}
	var found []string
	for key, n := range counts {
		if most := r.reference.allowed(r.scenario, key, r.plan.lastAct()) + r.allowance[key]; n > most {
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

// nothingRoundTheGate: the provider has got the calls that the gate has let
// through, and no other.
func nothingRoundTheGate(r *run) []string {
	passed, came := map[mockprovider.Operation]int{}, map[mockprovider.Operation]int{}
	operations := map[string]mockprovider.Operation{
		http.MethodPost: mockprovider.Create, http.MethodPatch: mockprovider.Resize,
		http.MethodDelete: mockprovider.Delete, http.MethodGet: mockprovider.Get,
	}
	for _, event := range r.gate.trace() {
		if event.Effect.Provider && event.Status > 0 {
			passed[operations[event.Effect.Verb]]++
		}
	}
	r.mu.Lock()
	passed[mockprovider.Get] += r.probes
	r.mu.Unlock()
	for _, call := range r.world.Provider.Calls() {
		came[call.Operation]++
	}
	var found []string
	for _, operation := range []mockprovider.Operation{mockprovider.Create, mockprovider.Resize, mockprovider.Delete, mockprovider.Get, mockprovider.Other} {
		// A call that was cut off when its incarnation stopped may have arrived.
		if came[operation] > passed[operation]+r.cutOff(operation, operations) || came[operation] < passed[operation] {
			found = append(found, fmt.Sprintf("%s: %d calls came to the provider, %d passed the gate", operation, came[operation], passed[operation]))
		}
	}
	return append(found, r.foreignWrites()...)
}

// cutOff counts the calls that were forwarded and whose answer never came.
func (r *run) cutOff(operation mockprovider.Operation, operations map[string]mockprovider.Operation) int {
	n := 0
	for _, event := range r.gate.trace() {
		if event.Effect.Provider && event.Status == 0 && event.Fault == None && operations[event.Effect.Verb] == operation {
			n++
		}
	}
	return n
}

// foreignWrites: each version of an object whose last writer was the operator is
// one that the gate has seen written.
func (r *run) foreignWrites() []string {
	written := map[string]bool{}
	unanswered := false
	for _, event := range r.gate.trace() {
		if event.Effect.Provider || event.Read {
			continue
		}
		unanswered = unanswered || event.Status == 0 && event.Fault == None
		object := metadataOf(event.Response)
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
			if entry.Manager == "bucketoperator" {
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
				revision.Kind, revision.Object.GetName(), revision.Object.GetResourceVersion()))
		}
	}
	return found
}

// retryLaw: failing attempts become rarer, and a Retry-After is honoured.
func retryLaw(r *run) []string {
	var found []string
	trace := r.gate.trace()
	for i, event := range trace {
		if event.Fault != Throttled || !event.Effect.Provider {
			continue
		}
		for _, later := range trace[i+1:] {
			if later.Effect.Key() == event.Effect.Key() && later.Path == event.Path && later.Epoch == event.Epoch {
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
			if most := 3 + math.Log2(1+float64(elapsed/(10*time.Millisecond))); float64(n) > most {
				found = append(found, fmt.Sprintf("%d attempts at a dead provider within %s", n, elapsed))
			}
		}
	}
	return found
}
