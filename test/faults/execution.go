package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// restWindow is how long nothing may happen before a state counts as
	// settled: longer than any delay that the operator has between two tries.
	restWindow = 300 * time.Millisecond
	// breath is the same between two acts of which neither is judged.
	breath = 60 * time.Millisecond
	tick   = 5 * time.Millisecond
)

// patience is how long a state may take to come: far longer than any does, so
// that a slow machine fails no run.
var patience = time.Minute

// Execution is one run: a plan that is carried out in a namespace of its own.
type Execution struct {
	// T is the test of the run.
	T testing.TB
	// Scenario is what is played.
	Scenario Scenario
	// Namespace is the run's own.
	Namespace string
	// Client reads from and writes to the API server, without a cache or the gate.
	Client client.WithWatch
	// Outside is what the adapter has opened.
	Outside Outside

	adapter   *Adapter
	plan      Plan
	reference *Reference // nil while it is being made
	gate      *Gate
	recorder  *recorder
	log       *logBook
	violation violations

	life     *Life
	operator Operator
	resync   time.Duration

	allowance map[string]int // what the user's deeds allow beyond the reference
	deletedAt int            // the gate's clock when the user first deleted the subject; 0: not

	judged    bool
	altered   bool                    // the user has done something that leads elsewhere than the reference
	goal      func(*Execution) string // what is waited for in place of the act's own condition
	snapshots []string
	frames    map[string][]int
}

// execute carries out a plan in a namespace that is empty.
func execute(t testing.TB, namespace string, a *Adapter, s Scenario, plan Plan, reference *Reference) *Execution {
	r := &Execution{
		T: t, Scenario: s, Namespace: namespace, Client: clientOf(t, a),
		adapter: a, plan: plan, reference: reference, gate: newGate(plan), log: &logBook{},
		allowance: map[string]int{}, frames: map[string][]int{},
	}
	r.Outside = a.Open(r)
	defer r.Outside.Close()
	var err error
	if r.recorder, err = record(t.Context(), r.Client, r.Namespace, a.Resources, r.checkReady); err != nil {
		t.Fatal(err)
	}
	defer r.recorder.stop()
	r.start()
	r.perform()
	r.operator.Stop(t)
	r.flush()
	if !r.struck() && !r.mayMiss() {
		r.violation.add("0 plan", "what was planned never happened: the run went another way before it")
	}
	for _, oracle := range slices.Concat(oracles, a.Oracles) {
		for _, message := range oracle.Judge(r) {
			r.violation.add(oracle.Name, message)
		}
	}
	return r
}

// start brings up a new incarnation of the operator.
func (r *Execution) start() {
	r.life = r.gate.begin(r.informers())
	r.life.Log = r.log.logger(r.plan.faultless())
	r.life.Resync = r.resync
	r.life.Backoff = Bounds{Min: minBackoff, Max: 200 * time.Millisecond}
	// A kind may take four times the greatest for how long the outside can be at
	// work: more than two passes take on a machine that is busy.
	r.life.Poll = Bounds{Min: 20 * time.Millisecond, Max: 2 * time.Second}
	if r.plan.Fault == Hang && r.plan.At.Port != API {
		r.life.CallTimeout = 400 * time.Millisecond
	}
	r.operator = r.Outside.Start(r.T, r.life)
}

// minBackoff is the shortest delay between two tries.
const minBackoff = 10 * time.Millisecond

// Trace is what has passed the gate so far.
func (r *Execution) Trace() []Event { return r.gate.trace() }

// Revisions are all states that objects were in so far.
func (r *Execution) Revisions() []Revision { return r.recorder.revisions() }

// Get is the object of that name as last seen; nil when there is none.
func (r *Execution) Get(resource, name string) client.Object { return r.recorder.get(resource, name) }

// All are the objects of a resource as last seen, by name.
func (r *Execution) All(resource string) map[string]client.Object { return r.recorder.all(resource) }

// Read reads an object from the API server; false when there is none.
func (r *Execution) Read(name string, into client.Object) bool {
	err := r.Client.Get(r.T.Context(), client.ObjectKey{Namespace: r.Namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		r.T.Fatalf("reading %s: %v", name, err)
	}
	return err == nil
}

// Allow allows for one more effect of that name than without faults.
func (r *Execution) Allow(effect string) { r.allowance[effect]++ }

// Alter says that the user has done something that leads elsewhere than the
// scenario does; goal says what is missing for it.
func (r *Execution) Alter(goal func(*Execution) string) { r.altered, r.goal = true, goal }

// Await waits, in the midst of an act, until goal misses nothing and the
// operator is at rest.
func (r *Execution) Await(goal func(*Execution) string) {
	r.goal = goal
	r.settle(Act{})
}

// RestartComparing restarts the operator so that it compares all the time.
func (r *Execution) RestartComparing() {
	r.resync = stabilityResync
	r.restart()
}

// informers is how many informers an incarnation has when it is up, as far as
// is known.
func (r *Execution) informers() int {
	if r.reference == nil {
		return 0
	}
	return len(r.reference.Frames)
}

// restart ends the incarnation in an orderly way and brings up another.
func (r *Execution) restart() {
	r.operator.Stop(r.T)
	r.life.die()
	r.start()
}

// perform plays the scenario. Once the plan's fault has happened and has been
// judged, what is left is to tear down.
func (r *Execution) perform() {
	for i, act := range r.Scenario.Acts {
		if r.judged && !act.Teardown {
			continue
		}
		r.gate.begun(i)
		r.flush()
		act.Do(r)
		r.gate.stir()
		r.settle(act)
		r.snapshotAfter(i, act)
		if r.judged && r.altered {
			break
		}
	}
	if !r.altered {
		return
	}
	for _, act := range r.Scenario.Acts { // whatever the user has made of it
		if act.Teardown {
			act.Do(r)
			r.gate.stir()
			r.settle(act)
		}
	}
}

// snapshotAfter compares the state after an act with the reference's, or makes
// it the reference's.
func (r *Execution) snapshotAfter(i int, act Act) {
	switch {
	case r.reference == nil:
		r.snapshots = append(r.snapshots, r.snapshot())
		for resource, n := range r.gate.stale.counts() {
			for len(r.frames[resource]) < i {
				r.frames[resource] = append(r.frames[resource], 0)
			}
			r.frames[resource] = append(r.frames[resource], n)
		}
	case r.plan.faultless():
		r.compare(i)
		r.checkRest(act)
	case !r.judged && (r.struck() || r.plan.Act <= i && r.mayMiss()):
		r.judged = true
		r.gate.disarm()
		r.raiseTheDead(act)
		if !r.altered {
			r.compare(i)
		}
		r.checkOneToOne()
		r.checkRest(act)
		r.goal = nil
	}
}

func (p Plan) faultless() bool { return p.Fault == None && p.Stale.Frame == 0 }

func (r *Execution) compare(i int) {
	if diff := difference(r.reference.Snapshots[i], r.snapshot()); diff != "" {
		r.violation.add("1 end state", fmt.Sprintf("after act %q, want (-) as without faults, have (+):\n%s", r.Scenario.Acts[i].Name, diff))
	}
}

// struck tells whether what was planned has happened and is over.
func (r *Execution) struck() bool {
	switch {
	case r.plan.Stale.Frame > 0:
		return r.judged || r.gate.stale.wasHit()
	case r.plan.Fault == None:
		return true
	}
	return r.gate.hasFired()
}

// mayMiss tells whether what was planned may not come to be: how often the
// operator reads is a matter of time, and so is what it reports in a race.
func (r *Execution) mayMiss() bool {
	return r.Scenario.Racing || r.plan.Stale.Frame > 0 || r.plan.At.Verb == http.MethodGet
}

// raiseTheDead lets go of a deposed operator's request now that its successor
// has settled.
func (r *Execution) raiseTheDead(act Act) {
	if !r.plan.Fault.parks() {
		return
	}
	if r.plan.Fault == ZombieRecreate {
		r.altered = true
		r.adapter.Recreate(r)
	}
	r.flush()
	r.gate.release()
	r.settle(act)
}

// settle waits until the act's condition holds and nothing goes on any more.
func (r *Execution) settle(act Act) {
	window := restWindow
	if r.plan.unseenDelay() {
		window = clientDelay
	}
	if r.reference != nil && !r.plan.faultless() && !r.plan.strikesIn(r.act(act)) && !act.Teardown {
		window = breath
	}
	begun := time.Now()
	r.eventually(func(ctx context.Context) string {
		condition := act.Until
		if r.goal != nil {
			condition = r.goal
		}
		why := condition(r)
		readsCount := !r.clocked(act)
		resting := r.gate.quiet(window, readsCount)
		if r.gate.stale.frozen() && (r.gate.still(frozenWindow, readsCount) || time.Since(begun) > frozenMost) {
			r.gate.stale.thaw()
			return "thawed"
		}
		switch {
		case why != "":
			return why
		case !resting:
			return "the operator does not come to rest"
		}
		if behind := r.recorder.behind(ctx); behind != "" {
			return behind
		}
		if !r.gate.quiet(window, readsCount) {
			return "the operator has begun again"
		}
		return condition(r) // on all that there is
	})
}

// clientDelay is longer than client-go waits, out of sight, before it repeats a
// request by itself or connects an informer again.
const clientDelay = 1700 * time.Millisecond

// unseenDelay tells whether client-go may be waiting.
func (p Plan) unseenDelay() bool {
	retried := p.Fault == Throttled || p.Fault == Lost && p.At.Verb == http.MethodGet
	return retried && p.At.Port == API || p.Stale.How == Relisted
}

// clocked tells whether the operator reads by the clock: then rest is when it
// does nothing else.
func (r *Execution) clocked(act Act) bool {
	return act.Clocked || r.resync != 0 || r.altered && slices.ContainsFunc(r.Scenario.Acts, func(a Act) bool { return a.Clocked })
}

// frozenWindow is how long an operator with a frozen informer has to be at rest
// before the informer goes on.
const frozenWindow = 120 * time.Millisecond

// frozenMost is how long an informer is frozen at most: an operator that resyncs
// all the time tries a write that its cache is too old for each time, and never
// comes to rest before.
const frozenMost = 10 * time.Second

func (r *Execution) act(act Act) int {
	for i := range r.Scenario.Acts {
		if r.Scenario.Acts[i].Name == act.Name {
			return i
		}
	}
	return -1
}

func (p Plan) strikesIn(act int) bool { return p.Act == act }

// eventually waits for a condition and meanwhile follows up on crashes.
func (r *Execution) eventually(condition func(context.Context) string) {
	var last string
	err := wait.PollUntilContextTimeout(r.T.Context(), tick, patience, true, func(ctx context.Context) (bool, error) {
		if r.life.isDead() {
			r.succeed()
		}
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		r.violation.add("13 recovery", fmt.Sprintf("still not so after %s: %s", patience, last))
		r.report()
		r.T.FailNow()
	}
}

// succeed clears a dead incarnation away, lets the user do what the plan has
// for the time without one, and starts the next.
func (r *Execution) succeed() {
	r.operator.Stop(r.T)
	r.flush()
	r.adapter.interlude(r.plan.While).Do(r)
	r.flush()
	r.start()
}

// flush waits until the recorder has seen, and judged, all that there is.
func (r *Execution) flush() {
	behind := ""
	err := wait.PollUntilContextTimeout(r.T.Context(), tick, patience, true, func(ctx context.Context) (bool, error) {
		behind = r.recorder.behind(ctx)
		return behind == "", nil
	})
	if err != nil {
		r.T.Fatalf("the recorder does not keep up: %v: %s", err, behind)
	}
}

// Create creates an object unless it exists.
func (r *Execution) Create(object client.Object) {
	object.SetNamespace(r.Namespace)
	r.eventuallyDo("creating "+object.GetName(), func(ctx context.Context) error {
		object.SetResourceVersion("")
		return r.Client.Create(ctx, object)
	})
}

// Change changes an object if it exists.
func Change[T client.Object](r *Execution, name string, object T, mutate func(T)) {
	r.eventuallyDo("changing "+name, func(ctx context.Context) error {
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, object); err != nil {
			return client.IgnoreNotFound(err)
		}
		base := object.DeepCopyObject().(client.Object)
		mutate(object)
		return r.Client.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
}

// Remove deletes an object if it exists.
func (r *Execution) Remove(name string, object client.Object) {
	if r.isSubject(object) && r.deletedAt == 0 {
		r.gate.mu.Lock()
		r.deletedAt = r.gate.clock
		r.gate.mu.Unlock()
	}
	object.SetName(name)
	object.SetNamespace(r.Namespace)
	r.eventuallyDo("deleting "+name, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.Client.Delete(ctx, object))
	})
}

// eventuallyDo repeats what another writer got in the way of.
func (r *Execution) eventuallyDo(what string, do func(context.Context) error) {
	var last error
	err := wait.PollUntilContextTimeout(r.T.Context(), tick, patience, true, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		r.T.Fatalf("%s: %v", what, last)
	}
}

// isSubject tells whether an object is of the subject's kind.
func (r *Execution) isSubject(object client.Object) bool {
	gvk, err := r.Client.GroupVersionKindFor(object)
	if err != nil {
		r.T.Fatal(err)
	}
	for _, resource := range r.adapter.Resources {
		if resource.Name == r.adapter.Subject.Resource {
			return resource.Kind == gvk.Kind
		}
	}
	return false
}

// report tells what the oracles found.
func (r *Execution) report() {
	r.violation.report(r)
}
