package engine

import (
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
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
	// Metrics observes what passes do; nothing when nil.
	Metrics *Metrics
}

// Reconciler reconciles the objects of one kind.
type Reconciler[T Object] struct {
	name      string
	kind      Kind[T]
	finalizer string
	options   Options
	writer    writer
	schedule  *schedule
}

// NewReconciler is a Reconciler for kind. finalizer is what Pass.Hold puts on
// an object; marks are the annotations that the kind keeps on its objects and
// nobody else has to touch.
func NewReconciler[T Object](name string, kind Kind[T], finalizer string, marks []string, options Options) *Reconciler[T] {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return &Reconciler[T]{
		name: name, kind: kind, finalizer: finalizer, options: options,
		writer:   writer{client: options.Client, live: options.Live, marks: marks},
		schedule: newSchedule(options.Clock.Now, options.Random),
	}
}

// Reconcile runs one pass over the object that the request names.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := r.kind.New()
	switch err := r.options.Client.Get(ctx, request.NamespacedName, obj); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.gone(ctx, request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, err
	}
	cached := obj.GetResourceVersion()
	if r.schedule.outdated(request.NamespacedName, obj.GetUID(), cached) {
		return reconcile.Result{RequeueAfter: r.schedule.catchUp(request.NamespacedName, obj.GetUID())}, nil
	}
	if valuer, ok := r.kind.(LogValuer[T]); ok {
		ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithValues(valuer.LogValues(obj)...))
	}
	pass := &Pass{
		writer: r.writer, finalizer: r.finalizer, scheme: r.options.Scheme,
		obj: obj, base: copyOf(obj), before: conditionsThatMatter(obj),
		// The API server keeps whole seconds; finer times would differ from what it has.
		now: r.options.Clock.Now().Truncate(time.Second), interval: r.options.Resync,
		due: r.schedule.due(request.NamespacedName, obj.GetUID()),
	}
	defer func() {
		if known := pass.base.GetResourceVersion(); known != cached && !pass.letGo {
			r.schedule.saw(request.NamespacedName, obj.GetUID(), known)
		}
	}()
	if obj.GetDeletionTimestamp().IsZero() {
		return r.finish(ctx, pass, obj, run(ctx, r.kind.Steps(pass, obj)))
	}
	if !pass.Held() {
		r.schedule.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	results := run(ctx, r.kind.Teardown(pass, obj))
	if !allDone(results) {
		return r.finish(ctx, pass, obj, results)
	}
	return r.letGo(ctx, pass, obj)
}

// gone drops what was kept for an object that is no more.
func (r *Reconciler[T]) gone(ctx context.Context, name types.NamespacedName) error {
	r.schedule.forget(name)
	if f, ok := r.kind.(Forgetter); ok {
		return f.Gone(ctx, name)
	}
	return nil
}

// letGo takes the finalizer off an object whose teardown is done.
func (r *Reconciler[T]) letGo(ctx context.Context, pass *Pass, obj T) (reconcile.Result, error) {
	logf.FromContext(ctx).Info("Removing the finalizer")
	if err := pass.release(ctx); err != nil {
		return r.steer(ctx, pass, err)
	}
	pass.letGo = true
	r.schedule.forget(client.ObjectKeyFromObject(obj))
	r.record(obj, pass.events)
	r.options.Metrics.deleted(r.name, pass.now.Sub(obj.GetDeletionTimestamp().Time))
	return reconcile.Result{}, nil
}

// run runs the steps in order up to the first that is not done.
func run(ctx context.Context, steps []Step) []result {
	results := make([]result, len(steps))
	for i := range steps {
		results[i].step = steps[i]
	}
	for i := 0; i < len(steps); {
		end := i + 1
		for steps[i].Concurrent && end < len(steps) && steps[end].Concurrent {
			end++
		}
		together(ctx, results[i:end])
		for ; i < end; i++ {
			if results[i].err != nil && !steps[i].Independent && !steps[i].Concurrent {
				return results
			}
		}
	}
	return results
}

// together runs steps at the same time. A panic in one goes on in the caller.
func together(ctx context.Context, results []result) {
	if len(results) == 1 {
		results[0].ran = true
		results[0].err = results[0].step.Do(ctx)
		return
	}
	var wait sync.WaitGroup
	panics := make([]any, len(results))
	for i := range results {
		wait.Go(func() {
			defer func() { panics[i] = recover() }()
			results[i].ran = true
			results[i].err = results[i].step.Do(ctx)
		})
	}
	wait.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
}

func allDone(results []result) bool {
	for _, r := range results {
		if !r.ran || r.err != nil {
			return false
		}
	}
	return true
}

// finish reports how the steps fared and says when the next pass is to be.
func (r *Reconciler[T]) finish(ctx context.Context, pass *Pass, obj T, results []result) (reconcile.Result, error) {
	for _, res := range results {
		if errors.Is(res.err, ErrStale) {
			return r.steer(ctx, pass, res.err)
		}
	}
	if stopping(ctx) {
		return r.steer(ctx, pass, nil)
	}
	if quiet, after := onlyQuiet(results); quiet && equality.Semantic.DeepEqual(pass.base, pass.obj) {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	r.report(pass, obj, results)
	if err := r.writer.writeStatus(ctx, pass); err != nil {
		return r.steer(ctx, pass, err)
	}
	r.tell(ctx, pass, obj)
	return r.next(pass, obj, results)
}

// report puts the outcome into the object's status.
func (r *Reconciler[T]) report(pass *Pass, obj T, results []result) {
	deleting := !obj.GetDeletionTimestamp().IsZero()
	set := conditionSet{list: copyOf(obj).GetConditions(), generation: obj.GetGeneration(), now: pass.now}
	var first *stepError
	if deleting {
		first = set.reportDeletion(results)
	} else {
		first = set.report(results)
	}
	notes := slices.Concat(pass.notes, pass.remarks)
	for _, conditionType := range pass.cleared {
		// One that is noted again has not changed, and keeps its time.
		if !slices.ContainsFunc(notes, func(c metav1.Condition) bool { return c.Type == conditionType }) {
			set.remove(conditionType)
		}
	}
	for _, note := range notes {
		set.set(note.Type, note.Status, note.Reason, note.Message)
	}
	obj.SetObservedGeneration(obj.GetGeneration())
	message := r.kind.Summarize(obj, Outcome{Deleting: deleting, Stalled: set.get(ConditionStalled) != nil})
	if first == nil {
		set.set(ConditionReady, metav1.ConditionTrue, ReasonReady, message)
	}
	obj.SetConditions(set.list)
}

// tell records events and metrics of what has changed.
func (r *Reconciler[T]) tell(ctx context.Context, pass *Pass, obj T) {
	before, now := pass.before, conditionsThatMatter(obj)
	if now.ready.Status != before.ready.Status || now.ready.Reason != before.ready.Reason {
		logf.FromContext(ctx).Info("Readiness changed",
			"ready", now.ready.Status, "reason", now.ready.Reason, "message", now.ready.Message)
		switch {
		case now.ready.Reason == ReasonDeleting && now.blocked.Status == metav1.ConditionTrue:
			// The warning below says the same.
		case now.ready.Status == metav1.ConditionTrue, now.ready.Reason == ReasonDeleting:
			pass.Announce(corev1.EventTypeNormal, now.ready.Reason, "%s", now.ready.Message)
		case now.ready.Status == metav1.ConditionFalse:
			pass.Announce(corev1.EventTypeWarning, now.ready.Reason, "%s", now.ready.Message)
		}
	}
	if now.blocked.Reason != before.blocked.Reason && now.blocked.Status == metav1.ConditionTrue {
		pass.Announce(corev1.EventTypeWarning, now.blocked.Reason, "%s", now.blocked.Message)
	}
	for _, note := range pass.notes {
		was := meta.FindStatusCondition(before.all, note.Type)
		if note.Status == metav1.ConditionFalse && (was == nil || was.Status != note.Status || was.Reason != note.Reason) {
			pass.Announce(corev1.EventTypeWarning, note.Reason, "%s: %s", note.Type, note.Message)
		}
	}
	r.record(obj, pass.events)
	if now.ready.Status == metav1.ConditionTrue && before.ready.Status != metav1.ConditionTrue {
		since := obj.GetCreationTimestamp().Time
		if before.ready.Status == metav1.ConditionFalse {
			since = before.ready.LastTransitionTime.Time
		}
		r.options.Metrics.ready(r.name, pass.now.Sub(since))
	}
}

func (r *Reconciler[T]) record(obj T, announcements []announcement) {
	for _, a := range announcements {
		r.options.Recorder.Eventf(obj, nil, a.eventType, a.reason, "Reconcile", "%s", cut(a.message, maxEventNote))
	}
}

// next says when the next pass is to be. An error that wants growing delays
// wins over all; a time that was asked for wins over the resync.
func (r *Reconciler[T]) next(pass *Pass, obj T, results []result) (reconcile.Result, error) {
	resync := r.schedule.remaining(client.ObjectKeyFromObject(obj), obj.GetUID(), pass.interval, pass.compared)
	var soonest time.Duration
	for _, res := range results {
		e := asStepError(res.err)
		switch {
		case e == nil:
		case e.retry == retryBackoff:
			return reconcile.Result{}, fmt.Errorf("%s: %w", e.reason, e)
		case e.retry == retryAfter && (soonest == 0 || e.after < soonest):
			soonest = max(e.after, time.Millisecond)
		}
	}
	if soonest > 0 {
		resync = soonest
	}
	return reconcile.Result{RequeueAfter: resync}, nil
}

// steer says what follows a pass that was not reported: it was out of date, a
// write failed, or the operator stops. What must not be lost is kept all the same.
func (r *Reconciler[T]) steer(ctx context.Context, pass *Pass, err error) (reconcile.Result, error) {
	if keepErr := r.writer.keep(ctx, pass); keepErr != nil {
		logf.FromContext(ctx).Error(keepErr, "Keeping what the pass has learned")
	}
	switch {
	case stopping(ctx):
		return reconcile.Result{}, nil
	case errors.Is(err, ErrStale):
		return reconcile.Result{RequeueAfter: r.schedule.catchUp(client.ObjectKeyFromObject(pass.obj), pass.obj.GetUID())}, nil
	}
	return reconcile.Result{}, err
}

// stopping tells whether the operator is about to end, or is no longer the
// leader: then nothing is to be said.
func stopping(ctx context.Context) bool { return ctx.Err() != nil }

// onlyQuiet tells whether each step that is not done asked to come back
// without a word, and when.
func onlyQuiet(results []result) (bool, time.Duration) {
	var soonest time.Duration
	for _, res := range results {
		e := asStepError(res.err)
		if e == nil {
			continue
		}
		if !e.quiet {
			return false, 0
		}
		if soonest == 0 || e.after < soonest {
			soonest = max(e.after, time.Millisecond)
		}
	}
	return soonest > 0, soonest
}

// visible are the conditions whose changes a person wants to hear of: two that
// the engine sets, and those that a kind notes.
type visible struct {
	ready, blocked metav1.Condition
	all            []metav1.Condition
}

func conditionsThatMatter(obj Object) visible {
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
