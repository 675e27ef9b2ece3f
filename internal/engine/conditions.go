package engine

import (
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

// result is one step and how it fared.
type result struct {
	step Step
	err  error
	ran  bool
}

// report derives all conditions of an object from how the steps fared. It is
// the only place where conditions come from.
func (s *conditionSet) report(results []result) (first *stepError) {
	var stalled, waiting *stepError
	retried := false
	for _, r := range results {
		e := s.reportStep(r)
		switch {
		case e != nil && e.quiet:
			waiting = e // not done, but another's trouble says more
		case first == nil:
			first = e
		}
		if e != nil && e.stalled && stalled == nil {
			stalled = e
		}
		retried = retried || e != nil && e.retry != retryOnEvent
	}
	if first == nil {
		first = waiting
	}
	if first == nil {
		s.remove(ConditionReconciling)
		s.remove(ConditionStalled)
		return nil
	}
	s.set(ConditionReady, first.status, first.reason, first.message)
	if stalled != nil && !retried {
		s.remove(ConditionReconciling)
		s.set(ConditionStalled, metav1.ConditionTrue, stalled.reason, stalled.message)
		return first
	}
	s.remove(ConditionStalled)
	s.set(ConditionReconciling, metav1.ConditionTrue, first.reason, first.message)
	return first
}

// reportStep sets a step's own condition and returns why it is not done, or nil.
func (s *conditionSet) reportStep(r result) *stepError {
	known := s.get(r.step.Condition)
	e := asStepError(r.err)
	switch {
	case r.ran && r.err == nil:
		s.set(r.step.Condition, metav1.ConditionTrue, r.step.Reason, "")
		return nil
	case r.ran && e != nil && e.quiet && known != nil:
		return e // what is known stays as it is
	case r.ran && e != nil:
		s.set(r.step.Condition, e.status, e.reason, e.message)
		return e
	case known == nil:
		s.set(r.step.Condition, metav1.ConditionUnknown, ReasonPending, "an earlier step is not done")
		known = s.get(r.step.Condition)
	}
	if known.Status == metav1.ConditionTrue {
		return nil
	}
	stalled := s.get(ConditionStalled)
	return &stepError{
		status: known.Status, reason: known.Reason, message: known.Message, retry: retryOnEvent,
		stalled: stalled != nil && stalled.Reason == known.Reason,
	}
}

// reportDeletion derives the conditions of an object whose teardown is not
// done: Ready says that it is going, DeletionBlocked what keeps it.
func (s *conditionSet) reportDeletion(results []result) (first *stepError) {
	for _, r := range results {
		if first = asStepError(r.err); first != nil {
			break
		}
	}
	if first == nil {
		first = &stepError{status: metav1.ConditionFalse, reason: ReasonDeleting, retry: retryOnEvent}
	}
	s.remove(ConditionReconciling)
	s.remove(ConditionStalled)
	if first.status == metav1.ConditionFalse {
		s.set(ConditionReady, metav1.ConditionFalse, ReasonDeleting, "the deletion is blocked: "+first.message)
		s.set(ConditionDeletionBlocked, metav1.ConditionTrue, first.reason, first.message)
	} else {
		s.set(ConditionReady, metav1.ConditionFalse, ReasonDeleting, "being deleted: "+first.message)
		s.remove(ConditionDeletionBlocked)
	}
	return first
}
