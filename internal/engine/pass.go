package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Pass is one run of the loop over one object: what a step may ask of the
// engine while it works.
type Pass struct {
	writer    writer
	finalizer string
	scheme    *runtime.Scheme

	obj    Object  // what the steps work on
	base   Object  // what the API server has, as far as this pass knows
	before visible // how the object was when the pass began

	began     time.Time
	now       time.Time
	resyncDue bool
	resynced  bool
	released  bool
	interval  time.Duration

	persist func(live Object) bool
	monitor *monitorRequest

	mu         sync.Mutex
	concurrent bool // Concurrent steps are at work
	conditions []passCondition
	removed    []string
	events     []passEvent
}

// passCondition is a condition that a step has set besides its own.
type passCondition struct {
	metav1.Condition
	silent bool // makes no event
}

type passEvent struct {
	eventType, reason, message string
}

// errConcurrent is a fault of the kind's code.
var errConcurrent = errors.New("a Concurrent step may not write to the object itself")

// Object is the object that the pass works on.
func (p *Pass) Object() Object { return p.obj }

// Client reads from the cache and writes to the API server.
func (p *Pass) Client() client.Client { return p.writer.client }

// Live reads from the API server itself.
func (p *Pass) Live() client.Reader { return p.writer.live }

// Scheme knows the kinds of objects and of what they own.
func (p *Pass) Scheme() *runtime.Scheme { return p.scheme }

// Now is when the pass began, in whole seconds.
func (p *Pass) Now() time.Time { return p.now }

// Began is when the pass began.
func (p *Pass) Began() time.Time { return p.began }

// ResyncDue tells whether it is time to compare the object with what is outside
// the cluster although nothing tells of a change.
func (p *Pass) ResyncDue() bool { return p.resyncDue }

// Resynced tells the engine that this pass has compared the object with what is
// outside the cluster: the next resync is due an interval from now.
func (p *Pass) Resynced() { p.resynced = true }

// ResyncEvery sets the object's own interval between resyncs, in place of the
// operator's.
func (p *Pass) ResyncEvery(interval time.Duration) { p.interval = interval }

// SetCondition sets a condition that tells something but does not count for
// Ready. When it becomes False, an event tells so too.
func (p *Pass) SetCondition(conditionType string, status metav1.ConditionStatus, reason, format string, args ...any) {
	p.setCondition(false, conditionType, status, reason, fmt.Sprintf(format, args...))
}

// SetConditionSilently is SetCondition without the event: for what holds for many
// objects alike, and is no news of this one.
func (p *Pass) SetConditionSilently(conditionType string, status metav1.ConditionStatus, reason, format string, args ...any) {
	p.setCondition(true, conditionType, status, reason, fmt.Sprintf(format, args...))
}

func (p *Pass) setCondition(silent bool, conditionType string, status metav1.ConditionStatus, reason, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conditions = append(p.conditions, passCondition{
		Condition: metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}, silent: silent,
	})
}

// RemoveCondition removes a condition that an earlier pass has set by
// SetCondition or SetConditionSilently.
func (p *Pass) RemoveCondition(conditionType string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = append(p.removed, conditionType)
}

// Event has an event recorded once the status of this pass has been written.
func (p *Pass) Event(eventType, reason, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, passEvent{eventType: eventType, reason: reason, message: fmt.Sprintf(format, args...)})
}

// Monitor keeps watch running besides the passes, on the leader only, until the
// object is gone, a pass asks for no monitor, or for one with another key. watch
// calls wake when the object needs a pass, and returns when ctx ends; one that
// returns before, or panics, is started again after a delay. It must not write
// to the cluster: what it has seen is for the pass to look at.
func (p *Pass) Monitor(key string, watch func(ctx context.Context, wake func())) {
	p.monitor = &monitorRequest{key: key, watch: watch}
}

// EnsureFinalizer makes sure, in one write, that the object carries the
// finalizer and the given annotations. It must come before the first call that
// makes something outside the cluster. It returns true when this pass wrote
// them, which also proves that the pass works on the object's newest state.
func (p *Pass) EnsureFinalizer(ctx context.Context, annotations map[string]string) (bool, error) {
	if p.HasFinalizer() && contains(p.obj.GetAnnotations(), annotations) {
		return false, nil
	}
	err := p.patchMetadata(ctx, func(obj client.Object) {
		controllerutil.AddFinalizer(obj, p.finalizer)
		obj.SetAnnotations(with(obj.GetAnnotations(), annotations))
	})
	return err == nil, err
}

// HasFinalizer tells whether the object carries the finalizer.
func (p *Pass) HasFinalizer() bool { return controllerutil.ContainsFinalizer(p.obj, p.finalizer) }

// RemoveFinalizer takes the finalizer off a live object, once there is nothing
// left outside the cluster that it stands for.
func (p *Pass) RemoveFinalizer(ctx context.Context) error {
	if !p.HasFinalizer() {
		return nil
	}
	return p.patchMetadata(ctx, func(obj client.Object) { controllerutil.RemoveFinalizer(obj, p.finalizer) })
}

func (p *Pass) patchMetadata(ctx context.Context, mutate func(client.Object)) error {
	if p.inConcurrentSteps() {
		return errConcurrent
	}
	return p.writer.patchMetadata(ctx, p, mutate)
}

// Checkpoint writes what the steps have put into the status so far, before a
// call that cannot be taken back is made on the strength of it. Ready is Unknown,
// with the given reason, where it was True. It also proves that the pass
// works on the object's newest state.
func (p *Pass) Checkpoint(ctx context.Context, reason, message string) error {
	if p.inConcurrentSteps() {
		return errConcurrent
	}
	set := conditionSet{list: copyOf(p.obj).GetConditions(), generation: p.obj.GetGeneration(), now: p.now}
	if ready := set.get(ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		set.set(ConditionReady, metav1.ConditionUnknown, reason, message)
		set.set(ConditionReconciling, metav1.ConditionTrue, reason, message)
		p.obj.SetConditions(set.list)
	}
	return p.writer.writeStatus(ctx, p)
}

// Persist has a result of this pass saved even if the object has changed meanwhile,
// or the operator is stopping: put writes it into the status of the live object, of the same uid, or
// returns false when that has no place for it any more. The pass's own status
// write makes it unnecessary.
func (p *Pass) Persist(put func(live Object) bool) { p.persist = put }

// ConfirmLatest asks the API server itself whether the pass works on the object's
// newest state, and returns ErrStale when it does not.
func (p *Pass) ConfirmLatest(ctx context.Context) error {
	if p.inConcurrentSteps() {
		return errConcurrent
	}
	return p.writer.confirm(ctx, p)
}

func (p *Pass) inConcurrentSteps() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.concurrent
}

func (p *Pass) setConcurrent(concurrent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.concurrent = concurrent
}

// foreignFinalizers are those that others have put on the object.
func (p *Pass) foreignFinalizers() []string {
	return slices.DeleteFunc(slices.Clone(p.obj.GetFinalizers()), func(f string) bool { return f == p.finalizer })
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// with is have with what is added.
func with(have, added map[string]string) map[string]string {
	if len(added) == 0 {
		return have
	}
	merged := maps.Clone(have)
	if merged == nil {
		merged = make(map[string]string, len(added))
	}
	maps.Copy(merged, added)
	return merged
}
