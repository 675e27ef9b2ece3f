package engine

import (
	"context"
	"fmt"
	"maps"
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

	now      time.Time
	due      bool
	compared bool
	letGo    bool
	interval time.Duration

	keep func(live Object) bool

	mu      sync.Mutex
	notes   []metav1.Condition
	remarks []metav1.Condition
	cleared []string
	events  []announcement
}

type announcement struct {
	eventType, reason, message string
}

// Due tells whether it is time to compare the object with what is outside the
// cluster although nothing tells of a change.
func (p *Pass) Due() bool { return p.due }

// Now is when the pass began.
func (p *Pass) Now() time.Time { return p.now }

// Compared tells the engine that this pass has compared the object with what
// is outside the cluster: the next comparison is due an interval from now.
func (p *Pass) Compared() { p.compared = true }

// ResyncEvery sets the object's own interval between comparisons, in place of
// the operator's.
func (p *Pass) ResyncEvery(interval time.Duration) { p.interval = interval }

// Note sets a condition that tells something but does not count for Ready.
func (p *Pass) Note(conditionType string, status metav1.ConditionStatus, reason, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Remark is Note without the event that a False makes: for what holds for many
// objects alike, and is no news of this one.
func (p *Pass) Remark(conditionType string, status metav1.ConditionStatus, reason, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remarks = append(p.remarks, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Clear removes a condition that Note or Remark has set in an earlier pass.
func (p *Pass) Clear(conditionType string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleared = append(p.cleared, conditionType)
}

// Announce has an event recorded once the status of this pass has been written.
func (p *Pass) Announce(eventType, reason, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, announcement{eventType: eventType, reason: reason, message: fmt.Sprintf(format, args...)})
}

// Hold makes sure, in one write, that the object carries the finalizer and the
// given annotations. It must come before the first call that makes something
// outside the cluster. It returns true when this pass wrote them, which also
// proves that the pass works on the object's newest state.
func (p *Pass) Hold(ctx context.Context, annotations map[string]string) (bool, error) {
	if controllerutil.ContainsFinalizer(p.obj, p.finalizer) && contains(p.obj.GetAnnotations(), annotations) {
		return false, nil
	}
	err := p.writer.patchMetadata(ctx, p, func(obj client.Object) {
		controllerutil.AddFinalizer(obj, p.finalizer)
		obj.SetAnnotations(with(obj.GetAnnotations(), annotations))
	})
	return err == nil, err
}

// Held tells whether the object carries the finalizer.
func (p *Pass) Held() bool { return controllerutil.ContainsFinalizer(p.obj, p.finalizer) }

// Checkpoint writes what the steps have put into the status so far, before a
// call that cannot be taken back is made on the strength of it. An object that
// was ready is so no longer, for the given reason. It also proves that the pass
// works on the object's newest state.
func (p *Pass) Checkpoint(ctx context.Context, reason, message string) error {
	set := conditionSet{list: copyOf(p.obj).GetConditions(), generation: p.obj.GetGeneration(), now: p.now}
	if ready := set.get(ConditionReady); ready != nil && ready.Status == metav1.ConditionTrue {
		set.set(ConditionReady, metav1.ConditionUnknown, reason, message)
		set.set(ConditionReconciling, metav1.ConditionTrue, reason, message)
		p.obj.SetConditions(set.list)
	}
	return p.writer.writeStatus(ctx, p)
}

// Keep names what this pass has learned that must not be lost, whatever has
// become of the object meanwhile and although the operator may be about to
// stop: put writes it into the status of the live object, of the same uid, or
// returns false when that has no place for it any more. The pass's own status
// write makes it unnecessary.
func (p *Pass) Keep(put func(live Object) bool) { p.keep = put }

// Fresh asks the API server itself whether the pass works on the object's
// newest state, and returns ErrStale when it does not.
func (p *Pass) Fresh(ctx context.Context) error { return p.writer.confirm(ctx, p) }

func (p *Pass) release(ctx context.Context) error {
	return p.writer.patchMetadata(ctx, p, func(obj client.Object) {
		controllerutil.RemoveFinalizer(obj, p.finalizer)
	})
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
