package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
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

// run is one execution of a plan.
type run struct {
	t         testing.TB
	plan      Plan
	scenario  Scenario
	reference *Reference // nil while it is being made
	world     *testkit.World
	gate      *Gate
	recorder  *recorder
	log       *logBook
	violation violations

	life     *incarnation
	operator *testkit.Operator
	resync   time.Duration

	mu        sync.Mutex
	probes    int
	lostByAct map[string]bool // ids of buckets that the scenario took away
	memo      map[string]string
	allowance map[string]int // what the user's deeds allow beyond the reference
	deletedAt int            // the gate's clock when the user first deleted the bucket; 0: not

	judged    bool
	altered   bool              // the user has done something that leads elsewhere than the reference
	goal      func(*run) string // what is waited for in place of the act's own condition
	snapshots []string
	frames    map[string][]int
}

// execute carries out a plan in a namespace that is empty.
func execute(t testing.TB, namespace string, s Scenario, plan Plan, reference *Reference) *run {
	mock, err := mockprovider.New(s.Provider())
	if err != nil {
		t.Fatalf("making the mock provider: %v", err)
	}
	server := httptest.NewServer(mock)
	defer server.Close()
	r := &run{
		t: t, plan: plan, scenario: s, reference: reference, gate: newGate(plan), log: &logBook{},
		world:     &testkit.World{Namespace: namespace, Client: sharedClient(t), Provider: mock, URL: server.URL},
		lostByAct: map[string]bool{}, memo: map[string]string{}, allowance: map[string]int{}, frames: map[string][]int{},
	}
	if r.recorder, err = record(t.Context(), r.world.Client, namespace, r.checkReady); err != nil {
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
	for _, oracle := range oracles {
		for _, message := range oracle.judge(r) {
			r.violation.add(oracle.name, message)
		}
	}
	return r
}

// start brings up a new incarnation of the operator.
func (r *run) start() {
	r.life = r.gate.begin(r.informers())
	config := testplane.Config()
	config.ContentType = runtime.ContentTypeJSON // so that the harness can read all of it
	settings := testkit.Settings{
		Client: config, WrapAPI: r.life.api, WrapProvider: r.life.provider, Log: r.log.logger(r.plan.faultless()),
		Backoff: controllers.Bounds{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond},
		Poll:    controllers.Bounds{Min: 20 * time.Millisecond, Max: 500 * time.Millisecond},
		Resync:  r.resync,
	}
	if r.scenario.NoConfig {
		settings.DefaultEndpoint = r.world.URL
	}
	if r.plan.Fault == Hang && r.plan.At.Provider {
		settings.CallTimeout = 400 * time.Millisecond
	}
	r.operator = r.world.Start(r.t, settings)
}

// informers is how many informers an incarnation has when it is up, as far as
// is known.
func (r *run) informers() int {
	if r.reference == nil {
		return 0
	}
	return len(r.reference.Frames)
}

// restart ends the incarnation in an orderly way and brings up another.
func (r *run) restart() {
	r.operator.Stop(r.t)
	r.life.die()
	r.start()
}

// perform plays the scenario. Once the plan's fault has happened and has been
// judged, what is left is to tear down.
func (r *run) perform() {
	for i, act := range r.scenario.Acts {
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
	for _, act := range r.scenario.Acts { // whatever the user has made of it
		if act.Teardown {
			act.Do(r)
			r.gate.stir()
			r.settle(act)
		}
	}
}

// snapshotAfter compares the state after an act with the reference's, or makes
// it the reference's.
func (r *run) snapshotAfter(i int, act Act) {
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

func (r *run) compare(i int) {
	if diff := difference(r.reference.Snapshots[i], r.snapshot()); diff != "" {
		r.violation.add("1 end state", fmt.Sprintf("after act %q, want (-) as without faults, have (+):\n%s", r.scenario.Acts[i].Name, diff))
	}
}

// struck tells whether what was planned has happened and is over.
func (r *run) struck() bool {
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
func (r *run) mayMiss() bool {
	return r.scenario.Racing || r.plan.Stale.Frame > 0 || r.plan.At.Verb == http.MethodGet
}

// raiseTheDead lets go of a deposed operator's request now that its successor
// has settled.
func (r *run) raiseTheDead(act Act) {
	if !r.plan.Fault.parks() {
		return
	}
	if r.plan.Fault == ZombieRecreate {
		r.recreateAll()
	}
	r.flush()
	r.gate.release()
	r.settle(act)
}

// settle waits until the act's condition holds and nothing goes on any more.
func (r *run) settle(act Act) {
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
	return retried && !p.At.Provider || p.Stale.How == Relisted
}

// clocked tells whether the operator reads by the clock: then rest is when it
// does nothing else.
func (r *run) clocked(act Act) bool {
	return act.Clocked || r.resync != 0 || r.altered && slices.ContainsFunc(r.scenario.Acts, func(a Act) bool { return a.Clocked })
}

// frozenWindow is how long an operator with a frozen informer has to be at rest
// before the informer goes on.
const frozenWindow = 120 * time.Millisecond

// frozenMost is how long an informer is frozen at most: an operator that resyncs
// all the time tries a write that its cache is too old for each time, and never
// comes to rest before.
const frozenMost = 10 * time.Second

func (r *run) act(act Act) int {
	for i := range r.scenario.Acts {
		if r.scenario.Acts[i].Name == act.Name {
			return i
		}
	}
	return -1
}

func (p Plan) strikesIn(act int) bool { return p.Act == act }

// eventually waits for a condition and meanwhile follows up on crashes.
func (r *run) eventually(condition func(context.Context) string) {
	var last string
	err := wait.PollUntilContextTimeout(r.t.Context(), tick, patience, true, func(ctx context.Context) (bool, error) {
		if r.life.isDead() {
			r.succeed()
		}
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		r.violation.add("13 recovery", fmt.Sprintf("still not so after %s: %s", patience, last))
		r.report()
		r.t.FailNow()
	}
}

// succeed clears a dead incarnation away, lets the user do what the plan has
// for the time without one, and starts the next.
func (r *run) succeed() {
	r.operator.Stop(r.t)
	r.flush()
	r.whileDown()
	r.start()
}

// flush waits until the recorder has seen, and judged, all that there is.
func (r *run) flush() {
	err := wait.PollUntilContextTimeout(r.t.Context(), tick, patience, true, func(ctx context.Context) (bool, error) {
		return r.recorder.behind(ctx) == "", nil
	})
	if err != nil {
		r.t.Fatalf("the recorder does not keep up: %v", err)
	}
}

// get reads an object from the API server; false when there is none.
func (r *run) get(name string, into client.Object) bool {
	err := r.world.Client.Get(r.t.Context(), client.ObjectKey{Namespace: r.world.Namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		r.t.Fatalf("reading %s: %v", name, err)
	}
	return err == nil
}

// create creates an object unless it exists.
func (r *run) create(object client.Object) {
	object.SetNamespace(r.world.Namespace)
	r.eventuallyDo("creating "+object.GetName(), func(ctx context.Context) error {
		object.SetResourceVersion("")
		return r.world.Client.Create(ctx, object)
	})
}

// change changes an object if it exists.
func change[T client.Object](r *run, name string, object T, mutate func(T)) {
	r.eventuallyDo("changing "+name, func(ctx context.Context) error {
		if err := r.world.Client.Get(ctx, client.ObjectKey{Namespace: r.world.Namespace, Name: name}, object); err != nil {
			return client.IgnoreNotFound(err)
		}
		base := object.DeepCopyObject().(client.Object)
		mutate(object)
		return r.world.Client.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
}

// remove deletes an object if it exists.
func (r *run) remove(name string, object client.Object) {
	if _, ok := object.(*storagev1.StorageBucket); ok && r.deletedAt == 0 {
		r.gate.mu.Lock()
		r.deletedAt = r.gate.clock
		r.gate.mu.Unlock()
	}
	object.SetName(name)
	object.SetNamespace(r.world.Namespace)
	r.eventuallyDo("deleting "+name, func(ctx context.Context) error {
		return client.IgnoreNotFound(r.world.Client.Delete(ctx, object))
	})
}

// eventuallyDo repeats what another writer got in the way of.
func (r *run) eventuallyDo(what string, do func(context.Context) error) {
	var last error
	err := wait.PollUntilContextTimeout(r.t.Context(), tick, patience, true, func(ctx context.Context) (bool, error) {
		err := do(ctx)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		r.t.Fatalf("%s: %v", what, last)
	}
}

// probe asks the provider for a bucket under its published address, as an
// application would.
func (r *run) probe(uri string) (int, error) {
	r.mu.Lock()
	r.probes++
	r.mu.Unlock()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, uri, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+probeKey)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// report tells what the oracles found.
func (r *run) report() {
	r.violation.report(r)
}
