package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"avalonhosting.example/bucketoperator/internal/egress"
)

// Options are what a Reconciler works with.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Recorder records events.
	Recorder events.EventRecorder
	// Scheme knows the kinds of objects and of what they own.
	Scheme *runtime.Scheme
	// Clock is the real one when nil.
	Clock clock.PassiveClock
	// Random gives numbers in [0,1) that spread what must not happen at once;
	// math/rand when nil.
	Random func() float64
	// Resync is how often an object is compared with what is outside the
	// cluster, when nothing tells of a change.
	Resync time.Duration
	// Backoff bounds the delays between the failures of a step; 250 ms to 5 min
	// when zero.
	Backoff Bounds
	// Metrics observes what passes do; nothing when nil.
	Metrics *Metrics
}

// Reconciler reconciles the objects of one kind.
type Reconciler[T Object] struct {
	kind     Kind[T]
	traits   Traits
	options  Options
	writer   writer
	schedule *schedule
	monitors *monitors
	queue    queue // nil until the controller has made it
}

// queue is what the engine asks of the controller's queue.
type queue interface {
	// Add asks for a pass now.
	Add(request reconcile.Request)
	// Event tells whether anything but a time that has come asked for the pass
	// that is under way.
	Event(request reconcile.Request) bool
	// Yield gives the worker of the pass back until resume is called.
	Yield(request reconcile.Request) (resume func())
}

// NewReconciler is a Reconciler for kind.
func NewReconciler[T Object](kind Kind[T], traits Traits, options Options) *Reconciler[T] {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return &Reconciler[T]{
		kind: kind, traits: traits, options: options,
		writer:   writer{client: options.Client, live: options.Live, traits: traits},
		schedule: newSchedule(options.Clock.Now, options.Random, options.Backoff),
		monitors: newMonitors(),
	}
}

// Reconcile runs one pass over the object that the request names.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if stopping(ctx) {
		return reconcile.Result{}, nil // the queue still hands out what waits: no pass begins any more
	}
	event := true
	if r.queue != nil {
		event = r.queue.Event(request)
		ctx = egress.WithYield(ctx, func() func() { return r.queue.Yield(request) })
	}
	began := r.options.Clock.Now()
	obj := r.kind.New()
	switch err := r.options.Client.Get(ctx, request.NamespacedName, obj); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.gone(ctx, request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, err
	}
	cached := obj.GetResourceVersion()
	if err := r.settleDoubt(ctx, request.NamespacedName, obj); err != nil {
		return reconcile.Result{}, err
	}
	if r.schedule.outdated(request.NamespacedName, obj.GetUID(), cached) {
		return reconcile.Result{RequeueAfter: r.schedule.catchUp(request.NamespacedName, obj.GetUID())}, nil
	}
	if valuer, ok := r.kind.(LogValuer[T]); ok {
		ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithValues(valuer.LogValues(obj)...))
	}
	pass := &Pass{
		writer: r.writer, finalizer: r.traits.Finalizer, scheme: r.options.Scheme,
		obj: obj, base: copyOf(obj), before: visibleConditions(obj),
		// The API server keeps whole seconds; finer times would differ from what it has.
		began: began, now: began.Truncate(time.Second), interval: r.options.Resync,
		resyncDue: r.schedule.resyncDue(request.NamespacedName, obj.GetUID()),
	}
	defer func() {
		if known := pass.base.GetResourceVersion(); known != cached && !pass.released {
			r.schedule.observe(request.NamespacedName, obj.GetUID(), known)
		}
	}()
	if !obj.GetDeletionTimestamp().IsZero() {
		return r.delete(ctx, pass, obj, event)
	}
	results := r.run(ctx, pass, r.kind.Steps(pass, obj), event)
	r.monitors.set(request.NamespacedName, obj.GetUID(), pass.monitor, r.wake(request))
	return r.finish(ctx, pass, obj, results)
}

// settleDoubt finds out which version the cache must have before a pass may build
// on it, where a write has failed that may have been carried out all the same.
// Otherwise the pass would find that what it wants to write stands there already,
// while the lost write has put something else there.
func (r *Reconciler[T]) settleDoubt(ctx context.Context, name types.NamespacedName, cached T) error {
	if !r.schedule.isDoubtful(name, cached.GetUID()) {
		return nil
	}
	live := r.kind.New()
	switch err := r.options.Live.Get(ctx, name, live); {
	case apierrors.IsNotFound(err), err == nil && live.GetUID() != cached.GetUID():
		r.schedule.forget(name) // the cache will tell
	case err != nil:
		return fmt.Errorf("reading the object: %w", err)
	default:
		r.schedule.observe(name, cached.GetUID(), live.GetResourceVersion())
	}
	return nil
}

// wake asks for a pass over the object.
func (r *Reconciler[T]) wake(request reconcile.Request) func() {
	return func() {
		if r.queue != nil {
			r.queue.Add(request)
		}
	}
}

// gone drops what was kept for an object that is no more.
func (r *Reconciler[T]) gone(ctx context.Context, name types.NamespacedName) error {
	r.schedule.forget(name)
	r.monitors.end(name)
	if f, ok := r.kind.(Forgetter); ok {
		return f.Gone(ctx, name)
	}
	return nil
}

// delete undoes what the finalizer stands for, and takes it off. The status says
// that the object is going before anything is undone, and that all is done while
// others still keep the object.
func (r *Reconciler[T]) delete(ctx context.Context, pass *Pass, obj T, event bool) (reconcile.Result, error) {
	if pass.before.ready.Reason != ReasonDeleting {
		r.report(pass, obj, nil)
		if err := r.writer.writeStatus(ctx, pass); err != nil {
			return r.abandon(ctx, pass, err)
		}
	}
	if !pass.HasFinalizer() {
		r.schedule.forget(client.ObjectKeyFromObject(obj))
		r.monitors.end(client.ObjectKeyFromObject(obj))
		return reconcile.Result{}, nil
	}
	results := r.run(ctx, pass, r.kind.Teardown(pass, obj), event)
	r.monitors.set(client.ObjectKeyFromObject(obj), obj.GetUID(), pass.monitor, r.wake(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}))
	if !allDone(results) || stale(results) {
		return r.finish(ctx, pass, obj, results)
	}
	if len(pass.foreignFinalizers()) > 0 {
		r.report(pass, obj, results)
		if err := r.writer.writeStatus(ctx, pass); err != nil {
			return r.abandon(ctx, pass, err)
		}
	}
	return r.release(ctx, pass, obj)
}

// release takes the finalizer off an object whose teardown is done.
func (r *Reconciler[T]) release(ctx context.Context, pass *Pass, obj T) (reconcile.Result, error) {
	logf.FromContext(ctx).Info("Removing the finalizer")
	if err := pass.RemoveFinalizer(ctx); err != nil {
		return r.abandon(ctx, pass, err)
	}
	pass.released = true
	r.schedule.forget(client.ObjectKeyFromObject(obj))
	r.monitors.end(client.ObjectKeyFromObject(obj))
	r.record(obj, pass.events)
	r.options.Metrics.deleted(r.traits.Name, pass.now.Sub(obj.GetDeletionTimestamp().Time))
	return reconcile.Result{}, nil
}

// run runs the steps in order up to the first that is not done. One that has
// failed is not run again before its time, unless an event has started the pass.
func (r *Reconciler[T]) run(ctx context.Context, pass *Pass, steps []Step, event bool) []result {
	results := make([]result, len(steps))
	name := client.ObjectKeyFromObject(pass.obj)
	for i, step := range steps {
		results[i].step = step
		if !event {
			results[i].heldFor = r.schedule.heldFor(name, pass.obj, stepKey(steps, i))
		}
	}
	for i := 0; i < len(steps); {
		end := i + 1
		for steps[i].Concurrent && end < len(steps) && steps[end].Concurrent {
			end++
		}
		runConcurrently(ctx, pass, results[i:end])
		for ; i < end; i++ {
			if !results[i].isDone() && !steps[i].Independent && !steps[i].Concurrent {
				return results
			}
		}
	}
	return results
}

// stepKey is what a step's delays are kept by.
func stepKey(steps []Step, i int) string {
	return cmp.Or(steps[i].Condition, fmt.Sprint(i))
}

// runConcurrently runs steps at the same time. A panic in one goes on in the caller.
func runConcurrently(ctx context.Context, pass *Pass, results []result) {
	if len(results) == 1 {
		results[0].do(ctx)
		return
	}
	pass.setConcurrent(true)
	defer pass.setConcurrent(false)
	var wait sync.WaitGroup
	panics := make([]any, len(results))
	for i := range results {
		wait.Go(func() {
			defer func() { panics[i] = recover() }()
			results[i].do(ctx)
		})
	}
	wait.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}

func (r *result) do(ctx context.Context) {
	if r.heldFor > 0 {
		return
	}
	r.ran = true
	r.outcome = r.step.Do(ctx)
}

func allDone(results []result) bool {
	for _, r := range results {
		if !r.isDone() {
			return false
		}
	}
	return true
}

// stale tells whether a step has found that the pass works on an object that has changed.
func stale(results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool { return errors.Is(r.outcome, ErrStale) })
}

// finish reports how the steps fared and says when the next pass is to be.
func (r *Reconciler[T]) finish(ctx context.Context, pass *Pass, obj T, results []result) (reconcile.Result, error) {
	if stale(results) {
		return r.abandon(ctx, pass, ErrStale)
	}
	if stopping(ctx) {
		return r.abandon(ctx, pass, nil)
	}
	if after := onlyRequeues(results); after > 0 && equality.Semantic.DeepEqual(pass.base, pass.obj) {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	r.report(pass, obj, results)
	if err := r.writer.writeStatus(ctx, pass); err != nil {
		return r.abandon(ctx, pass, err)
	}
	r.recordChanges(ctx, pass, obj)
	return r.next(pass, obj, results)
}

// report puts the outcome into the object's status.
func (r *Reconciler[T]) report(pass *Pass, obj T, results []result) {
	set := conditionSet{list: copyOf(obj).GetConditions(), generation: obj.GetGeneration(), now: pass.now}
	var summary Summary
	if obj.GetDeletionTimestamp().IsZero() {
		summary = set.report(results)
	} else {
		var waitsFor []string
		if allDone(results) && results != nil || !pass.HasFinalizer() {
			waitsFor = pass.foreignFinalizers()
		}
		summary = set.reportDeletion(results, waitsFor)
	}
	for _, conditionType := range pass.removed {
		// One that is set again has not changed, and keeps its time.
		if !slices.ContainsFunc(pass.conditions, func(c passCondition) bool { return c.Type == conditionType }) {
			set.remove(conditionType)
		}
	}
	for _, c := range pass.conditions {
		set.set(c.Type, c.Status, c.Reason, c.Message)
	}
	obj.SetObservedGeneration(obj.GetGeneration())
	r.kind.Summarize(obj, &summary)
	set.setReady(summary)
	obj.SetConditions(set.list)
}

// recordChanges records events and metrics of what has changed.
func (r *Reconciler[T]) recordChanges(ctx context.Context, pass *Pass, obj T) {
	before, now := pass.before, visibleConditions(obj)
	if now.ready.Status != before.ready.Status || now.ready.Reason != before.ready.Reason {
		logf.FromContext(ctx).Info("Readiness changed",
			"ready", now.ready.Status, "reason", now.ready.Reason, "message", now.ready.Message)
		switch {
		case now.ready.Reason == ReasonDeleting && now.blocked.Status == metav1.ConditionTrue:
			// The warning below says the same.
		case now.ready.Status == metav1.ConditionTrue, now.ready.Reason == ReasonDeleting:
			pass.Event(corev1.EventTypeNormal, now.ready.Reason, "%s", now.ready.Message)
		case now.ready.Status == metav1.ConditionFalse:
			pass.Event(corev1.EventTypeWarning, now.ready.Reason, "%s", now.ready.Message)
		}
	}
	if now.blocked.Reason != before.blocked.Reason && now.blocked.Status == metav1.ConditionTrue {
		pass.Event(corev1.EventTypeWarning, now.blocked.Reason, "%s", now.blocked.Message)
	}
	for _, c := range pass.conditions {
		was := meta.FindStatusCondition(before.all, c.Type)
		if !c.silent && c.Status == metav1.ConditionFalse && (was == nil || was.Status != c.Status || was.Reason != c.Reason) {
			pass.Event(corev1.EventTypeWarning, c.Reason, "%s: %s", c.Type, c.Message)
		}
	}
	r.record(obj, pass.events)
	if now.ready.Status == metav1.ConditionTrue && before.ready.Status != metav1.ConditionTrue {
		since := obj.GetCreationTimestamp().Time
		if before.ready.Status == metav1.ConditionFalse {
			since = before.ready.LastTransitionTime.Time
		}
		r.options.Metrics.ready(r.traits.Name, pass.now.Sub(since))
	}
}

func (r *Reconciler[T]) record(obj T, passEvents []passEvent) {
	for _, e := range passEvents {
		r.options.Recorder.Eventf(obj, nil, e.eventType, e.reason, "Reconcile", "%s", cut(e.message, maxEventNote))
	}
}

// next says when the next pass is to be: the soonest that any step has asked
// for, or the resync. A step that has failed in this pass makes the pass fail, so
// that it counts as such; the queue then asks the schedule for the time.
func (r *Reconciler[T]) next(pass *Pass, obj T, results []result) (reconcile.Result, error) {
	name := client.ObjectKeyFromObject(obj)
	soonest := r.schedule.untilResync(name, obj.GetUID(), pass.interval, pass.resynced)
	priority := handler.LowPriority
	steps := make([]Step, len(results))
	for i := range results {
		steps[i] = results[i].step
	}
	var failure error
	for i, res := range results {
		after := res.heldFor
		if res.ran {
			after = r.schedule.afterStep(name, obj, stepKey(steps, i), res.outcome)
		}
		if after > 0 && after < soonest {
			soonest, priority = after, 0
		}
		if o := res.outcome; res.ran && o.verdict == verdictFailed && o.after == 0 && failure == nil {
			failure = fmt.Errorf("%s: %w", o.reason, o)
		}
	}
	if failure != nil {
		r.schedule.failed(name, obj.GetUID(), soonest)
		return reconcile.Result{}, failure
	}
	return reconcile.Result{RequeueAfter: soonest, Priority: &priority}, nil
}

// abandon says what follows a pass that was not reported: it was out of date, a
// write failed, or the operator stops. What must not be lost is written all the same.
func (r *Reconciler[T]) abandon(ctx context.Context, pass *Pass, err error) (reconcile.Result, error) {
	if persistErr := r.writer.persist(ctx, pass); persistErr != nil {
		logf.FromContext(ctx).Error(persistErr, "Writing down what the pass has learned")
	}
	switch {
	case stopping(ctx):
		return reconcile.Result{}, nil
	case errors.Is(err, ErrStale):
		return reconcile.Result{RequeueAfter: r.schedule.catchUp(client.ObjectKeyFromObject(pass.obj), pass.obj.GetUID())}, nil
	}
	if err != nil {
		r.schedule.doubt(client.ObjectKeyFromObject(pass.obj), pass.obj.GetUID())
	}
	return reconcile.Result{}, err
}

// stopping tells whether the operator is about to end, or is no longer the
// leader: then nothing is to be said.
func stopping(ctx context.Context) bool { return ctx.Err() != nil }

// onlyRequeues is when to come back where each step that is not done asked for
// that without a word; 0 where there is none, or another is not done either.
func onlyRequeues(results []result) time.Duration {
	var soonest time.Duration
	for _, res := range results {
		switch o := res.outcome; {
		case res.heldFor > 0:
			return 0
		case !res.ran, o.isDone(), o.verdict == verdictUnchanged, o.verdict == verdictSkipped:
		case o.verdict != verdictRequeue:
			return 0
		case soonest == 0 || o.after < soonest:
			soonest = o.after
		}
	}
	return soonest
}

// visible are the conditions whose changes a person wants to hear of: two that
// the engine sets, and those that a kind sets besides those of its steps.
type visible struct {
	ready, blocked metav1.Condition
	all            []metav1.Condition
}

func visibleConditions(obj Object) visible {
	v := visible{ready: metav1.Condition{Status: metav1.ConditionUnknown}, all: slices.Clone(obj.GetConditions())}
	for _, c := range obj.GetConditions() {
		switch c.Type {
		case ConditionReady:
			v.ready = c
		case ConditionDeletionBlocked:
			v.blocked = c
		}
	}
	return v
}
