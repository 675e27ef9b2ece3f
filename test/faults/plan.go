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
	// While is what the user does while the operator is down after a crash.
	While While
	// Stale is what goes wrong with an informer.
	Stale Stale
	// Act is the act of the scenario in which it goes wrong.
	Act int
}

// While is what a user does while the operator is down.
type While string

const (
	// Nothing is done.
	Nothing While = ""
	// Delete deletes the bucket.
	Delete While = "delete"
	// Recreate deletes the bucket and creates it again under the same name.
	Recreate While = "recreate"
	// ChangeBack changes the specs of bucket and configuration and changes them back.
	ChangeBack While = "change-back"
	// Damage edits the bucket's Secret and deletes its Service.
	Damage While = "damage"
	// RemoveProvider deletes the provider's Secret and the configuration.
	RemoveProvider While = "remove-provider"
)

var whiles = []While{Nothing, Delete, Recreate, ChangeBack, Damage, RemoveProvider}

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
	return name
}

// Kind is what plans are counted by.
func (p Plan) Kind() string {
	switch {
	case p.Stale.Frame > 0:
		return "watch " + string(p.Stale.How)
	case p.While != Nothing:
		return string(p.Fault) + "+" + string(p.While)
	}
	return string(p.Fault)
}

// plans are all plans of a scenario, made from what happened in its reference run.
func plans(s Scenario, reference *Reference) []Plan {
	all := []Plan{{Scenario: s.Name, Fault: None}}
	for _, step := range reference.Steps {
		if step.Echo || step.Read && s.Acts[step.Act].Clocked {
			continue // how many of them there are is a matter of time
		}
		for _, fault := range faultsOf(step.Effect, step.Read) {
			plan := Plan{Scenario: s.Name, Fault: fault, At: step.Effect, Act: step.Act}
			if !fault.crashes() {
				all = append(all, plan)
				continue
			}
			for _, while := range whiles {
				if while.makesSense(s, step.Act) {
					plan.While = while
					all = append(all, plan)
				}
			}
		}
	}
	return append(all, stalePlans(s, reference)...)
}

// makesSense tells whether there is something for the user to do it to.
func (w While) makesSense(s Scenario, act int) bool {
	before := s.Acts[:act+1]
	bucketExists := slices.ContainsFunc(before, func(a Act) bool { return a.Name == createBucket })
	switch w {
	case Nothing:
		return true
	case RemoveProvider:
		return !s.NoConfig
	case Recreate:
		return bucketExists && !slices.ContainsFunc(before, func(a Act) bool { return a.EndsConfig })
	case Delete, ChangeBack, Damage:
		return bucketExists
	}
	return false
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

// reference makes a Reference of a run.
func referenceOf(trace []Event, snapshots []string, frames map[string][]int) *Reference {
	r := &Reference{Snapshots: snapshots, Frames: frames}
	released := math.MaxInt
	for _, event := range trace {
		object := metadataOf(event.Response)
		if event.Effect.Target == kindBucket+"/"+bucketName && object.DeletionTimestamp != nil && len(object.Finalizers) == 0 && !event.Read {
			released = event.End
		}
		if !event.counts() {
			continue
		}
		r.Steps = append(r.Steps, Step{
			Effect: event.Effect, Read: event.Read, Act: event.Act, Status: event.Status,
			Echo: event.Effect.Provider && event.Begin > released,
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
		key, _, _ := strings.Cut(step.Effect.Target, "/status")
		if step.Effect.Provider {
			key = "provider"
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
		if step.Effect.Key() == key && step.Status < 300 && (step.Act <= upTo || s.Acts[step.Act].Teardown) {
			n++
		}
	}
	return n
}
