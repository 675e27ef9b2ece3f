package engine

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the API server takes of a condition's message and of an event's note, in bytes.
const (
	maxConditionMessage = 32768
	maxEventNote        = 1024
)

// cut is s, or as much of its beginning as fits into most bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// conditionSet is an object's conditions while a pass works on them.
type conditionSet struct {
	list       []metav1.Condition
	generation int64
	now        time.Time
}

func (s *conditionSet) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.list, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: cut(message, maxConditionMessage),
		ObservedGeneration: s.generation, LastTransitionTime: metav1.NewTime(s.now),
	})
}

func (s *conditionSet) get(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(s.list, conditionType)
}

func (s *conditionSet) remove(conditionType string) {
	meta.RemoveStatusCondition(&s.list, conditionType)
}

// setReady sets the summary.
func (s *conditionSet) setReady(summary Summary) {
	s.set(ConditionReady, summary.Status, summary.Reason, summary.Message)
}

// result is one step and how it fared.
type result struct {
	step    Step
	outcome Outcome
	ran     bool
	// heldFor is how long the step, which has failed, is not to be run again.
	heldFor time.Duration
}

// isDone tells whether the next step may build on this one.
func (r result) isDone() bool { return r.ran && r.outcome.isDone() }

// trouble is what of a step counts for Ready: why it is not done.
type trouble struct {
	status          metav1.ConditionStatus
	reason, message string
	stalled         bool // somebody has to change something first
	retried         bool // the step is run again at a certain time
	silent          bool // another's trouble says more
}

// report derives all conditions of an object from how the steps fared, and
// returns what Ready is to be.
func (s *conditionSet) report(results []result) Summary {
	var first, silent, stalled *trouble
	retried := false
	for _, r := range results {
		t := s.reportStep(r)
		if t == nil {
			continue
		}
		switch {
		case t.silent:
			silent = t
		case first == nil:
			first = t
		}
		if t.stalled && stalled == nil {
			stalled = t
		}
		retried = retried || t.retried
	}
	if first == nil {
		first = silent
	}
	if first == nil {
		s.remove(ConditionReconciling)
		s.remove(ConditionStalled)
		return Summary{Status: metav1.ConditionTrue, Reason: ReasonReady}
	}
	summary := Summary{Status: first.status, Reason: first.reason, Message: first.message}
	if stalled != nil && !retried {
		s.remove(ConditionReconciling)
		s.set(ConditionStalled, metav1.ConditionTrue, stalled.reason, stalled.message)
		summary.Stalled = true
		return summary
	}
	s.remove(ConditionStalled)
	s.set(ConditionReconciling, metav1.ConditionTrue, first.reason, first.message)
	return summary
}

// reportStep sets a step's own condition and returns why it is not done, or nil.
func (s *conditionSet) reportStep(r result) *trouble {
	known := s.get(r.step.Condition)
	o := r.outcome
	switch {
	case r.isDone():
		s.setStep(r.step, metav1.ConditionTrue, o.reason, o.message)
		return nil
	case r.ran && o.verdict == verdictRequeue && known != nil:
		return &trouble{status: metav1.ConditionUnknown, reason: o.reason, message: o.message, retried: true, silent: true}
	case r.ran && (!o.silent() || o.verdict == verdictRequeue):
		status := o.status(r.step)
		s.setStep(r.step, status, o.reason, o.message)
		return &trouble{
			status: status, reason: o.reason, message: o.message,
			stalled: o.stalled, retried: o.verdict == verdictFailed || o.after > 0,
			silent: o.verdict == verdictRequeue,
		}
	case known == nil:
		s.setStep(r.step, metav1.ConditionUnknown, ReasonPending, "an earlier step is not done")
		return &trouble{status: metav1.ConditionUnknown, reason: ReasonPending, message: "an earlier step is not done"}
	case known.Status == metav1.ConditionTrue:
		return nil
	}
	stalled := s.get(ConditionStalled)
	return &trouble{
		status: known.Status, reason: known.Reason, message: known.Message, retried: r.heldFor > 0,
		stalled: stalled != nil && stalled.Reason == known.Reason,
	}
}

// setStep sets a step's condition, if it has one.
func (s *conditionSet) setStep(step Step, status metav1.ConditionStatus, reason, message string) {
	if step.Condition != "" {
		s.set(step.Condition, status, reason, message)
	}
}

// reportDeletion derives the conditions of an object on its way out, and returns
// what Ready is to be: that it is going. DeletionBlocked tells all that keeps it.
func (s *conditionSet) reportDeletion(results []result, waitsFor []string) Summary {
	ready := Summary{Deleting: true, Status: metav1.ConditionFalse, Reason: ReasonDeleting}
	var blocked, waiting []*trouble
	for _, r := range results {
		t := s.reportStep(r)
		switch {
		case t == nil, !r.ran && r.heldFor == 0: // not reached: says nothing of its own
		case t.status == metav1.ConditionFalse:
			blocked = append(blocked, t)
		default:
			waiting = append(waiting, t)
		}
	}
	s.remove(ConditionReconciling)
	s.remove(ConditionStalled)
	switch {
	case len(blocked) > 0:
		ready.Message = "the deletion is blocked: " + messages(blocked)
		s.set(ConditionDeletionBlocked, metav1.ConditionTrue, blocked[0].reason, messages(blocked))
		return ready
	case len(waiting) > 0:
		ready.Message = "being deleted: " + messages(waiting)
	case len(waitsFor) > 0:
		ready.Message = "being deleted: the operator's part is done, others' finalizers remain, such as " + waitsFor[0]
	default:
		ready.Message = "being deleted"
	}
	s.remove(ConditionDeletionBlocked)
	return ready
}

// messages joins what several steps have to say, each once.
func messages(troubles []*trouble) string {
	var all []string
	for _, t := range troubles {
		if !slices.Contains(all, t.message) {
			all = append(all, t.message)
		}
	}
	return strings.Join(all, "; ")
}
