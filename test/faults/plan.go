package faults

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Plan is one run: a scenario and what goes wrong in it.
type Plan struct {
	// Scenario is the scenario's name.
	Scenario string
	// Fault happens At an effect. None leaves all of them alone.
	Fault Fault
	At    Effect
	// Then is what goes wrong with the first effect of the recovery from Fault;
	// empty for nothing.
	Then Fault
	// While is what the user does while the operator is down after a crash.
	While While
	// Stale is what goes wrong with an informer.
	Stale Stale
	// Act is the act of the scenario in which it goes wrong.
	Act int
}

// Name is the same in each process: it is how a plan is asked for.
func (p Plan) Name() string {
	switch {
	case p.Stale.Frame > 0:
		return fmt.Sprintf("%s/%s/%s@%d", p.Scenario, p.Stale.How, p.Stale.Resource, p.Stale.Frame)
	case p.Fault == None:
		return p.Scenario + "/none"
	}
	name := fmt.Sprintf("%s/%s/%s", p.Scenario, p.Fault, strings.ReplaceAll(p.At.String(), " ", "_"))
	if p.While != Nothing {
		name += "+" + string(p.While)
	}
	if p.Then != "" {
		name += "/then/" + string(p.Then)
	}
	return name
}

// Kind is what plans are counted by.
func (p Plan) Kind() string {
	switch {
	case p.Stale.Frame > 0:
		return "watch " + string(p.Stale.How)
	case p.While != Nothing:
		return string(p.Fault) + "+" + string(p.While)
	case p.Then != "":
		return string(p.Fault) + ", then " + string(p.Then)
	}
	return string(p.Fault)
}

// plans are all plans of a scenario, made from what happened in its reference run.
func plans(a *Adapter, s Scenario, reference *Reference) []Plan {
	all := []Plan{{Scenario: s.Name, Fault: None}}
	for _, step := range reference.Steps {
		if step.Echo || step.Read && s.Acts[step.Act].Clocked {
			continue // how many of them there are is a matter of time
		}
		for _, fault := range faultsOf(step.Effect, step.Read) {
			plan := Plan{Scenario: s.Name, Fault: fault, At: step.Effect, Act: step.Act}
			all = append(all, plan)
			if !step.Read && slices.Contains(firsts, fault) {
				all = append(all, pairs(plan)...)
			}
			if !fault.crashes() {
				continue
			}
			for _, interlude := range a.Interludes {
				if interlude.MakesSense(s, step.Act) {
					plan.While = interlude.Name
					all = append(all, plan)
				}
			}
		}
	}
	return append(all, stalePlans(s, reference)...)
}

// firsts are the faults that leave a recovery behind in which another can happen,
// seconds are those others.
var (
	firsts  = []Fault{CrashBefore, CrashAfter, Failed, Lost, Conflict}
	seconds = []Fault{CrashBefore, CrashAfter, Failed, Lost}
)

// pairs are the plan with a second fault each, once the recovery from the first
// one has begun.
func pairs(plan Plan) []Plan {
	pairs := make([]Plan, len(seconds))
	for i, second := range seconds {
		pairs[i] = plan
		pairs[i].Then = second
	}
	return pairs
}

func stalePlans(s Scenario, reference *Reference) []Plan {
	var all []Plan
	for _, resource := range slices.Sorted(maps.Keys(reference.Frames)) {
		for act := range s.Acts {
			first, last := 1, reference.Frames[resource][act]
			if act > 0 {
				first = reference.Frames[resource][act-1] + 1
			}
			for frame := first; frame <= last; frame++ {
				for _, how := range staleKinds {
					all = append(all, Plan{Scenario: s.Name, Fault: None, Act: act, Stale: Stale{Resource: resource, Frame: frame, How: how}})
				}
			}
		}
	}
	return all
}

// Reference is what a run without faults does.
type Reference struct {
	// Steps are the effects and reads in order.
	Steps []Step
	// Snapshots are the states after each act, masked.
	Snapshots []string
	// Frames are how many frames each informer had got after each act.
	Frames map[string][]int
}

// Step is an effect or read of a reference run.
type Step struct {
	Effect Effect
	Read   bool
	Act    int
	Status int
	// Echo is true for what a pass did that still saw an object which was let
	// go already: how many there are is a matter of time, and they do nothing.
	Echo bool
}

// referenceOf makes a Reference of a run.
func referenceOf(subject Object, trace []Event, snapshots []string, frames map[string][]int) *Reference {
	r := &Reference{Snapshots: snapshots, Frames: frames}
	released := math.MaxInt
	for _, event := range trace {
		object := MetadataOf(event.Response)
		if event.Effect.Port == API && event.Effect.Target() == subject.String() && object.DeletionTimestamp != nil && len(object.Finalizers) == 0 && !event.Read {
			released = event.End
		}
		if !event.counts() {
			continue
		}
		r.Steps = append(r.Steps, Step{
			Effect: event.Effect, Read: event.Read, Act: event.Act, Status: event.Status,
			Echo: event.Outside() && event.Begin > released,
		})
	}
	return r
}

// common keeps the steps that are in the other reference too.
func (r *Reference) common(other *Reference) {
	r.Steps = slices.DeleteFunc(r.Steps, func(step Step) bool { return !slices.Contains(other.Steps, step) })
	for resource, frames := range r.Frames {
		for i := range frames {
			if theirs := other.Frames[resource]; i < len(theirs) {
				frames[i] = min(frames[i], theirs[i])
			}
		}
	}
}

// sequences are the effects of each object in order: what different objects
// have done to them at the same time comes in any order.
func (r *Reference) sequences() map[string][]string {
	sequences := map[string][]string{}
	for _, step := range r.Steps {
		if step.Read || step.Echo {
			continue
		}
		key, _, _ := strings.Cut(step.Effect.Target(), "/status")
		if step.Effect.Port != API {
			key = string(step.Effect.Port)
		}
		sequences[key] = append(sequences[key], fmt.Sprintf("act %d: %s: %d", step.Act, step.Effect, step.Status))
	}
	return sequences
}

// allowed is how often an effect with this key may succeed up to and with act,
// or in the acts that tear down.
func (r *Reference) allowed(s Scenario, key string, upTo int) int {
	n := 0
	for _, step := range r.Steps {
		if step.Effect.Name() == key && step.Status < 300 && (step.Act <= upTo || s.Acts[step.Act].Teardown) {
			n++
		}
	}
	return n
}
