package engine

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrUnchanged is what a step returns that found nothing to do because the
// status already tells how it fared: its condition stays as it is and counts
// as it is.
var ErrUnchanged = errors.New("unchanged since the last pass")

// ErrSkipped is what a step returns that cannot say anything because an earlier
// one is not done: its condition stays as it is.
var ErrSkipped = errors.New("skipped")

// ErrStale is returned when the pass worked on an object that has changed
// meanwhile. Nothing was written; the engine runs the pass again soon.
var ErrStale = errors.New("the object has changed meanwhile")

// retry says what happens after a step that is not done.
type retry int

const (
	retryBackoff retry = iota // again, with growing delays
	retryAfter                // again, after a given time
	retryOnEvent              // when a watch tells of a change, or at the next resync
)

// stepError is a step's word on why it is not done.
type stepError struct {
	status  metav1.ConditionStatus
	reason  string
	message string
	cause   error
	retry   retry
	after   time.Duration
	stalled bool
	quiet   bool
}

func (e *stepError) Error() string { return e.message }
func (e *stepError) Unwrap() error { return e.cause }

// Wait says: not yet, no failure; look again after the given time or, if that
// is 0, when a watch tells of a change. The condition becomes Unknown.
func Wait(after time.Duration, reason, format string, args ...any) error {
	e := &stepError{status: metav1.ConditionUnknown, reason: reason, message: fmt.Sprintf(format, args...), retry: retryAfter, after: after}
	if after == 0 {
		e.retry = retryOnEvent
	}
	return e
}

// Again says: come back after the given time, there is nothing to report. It
// keeps short waits out of the status, where each would cost a write.
func Again(after time.Duration) error {
	return &stepError{status: metav1.ConditionUnknown, reason: ReasonPending, message: "waiting", retry: retryAfter, after: after, quiet: true}
}

// Missing says: something in the cluster that a watch will tell of is not
// there. The condition becomes False; nothing is retried before that.
func Missing(reason, format string, args ...any) error {
	return &stepError{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(format, args...), retry: retryOnEvent}
}

// Because says: it failed, try again with growing delays. The condition becomes False.
func Because(reason string, err error) error {
	return &stepError{status: metav1.ConditionFalse, reason: reason, message: err.Error(), cause: err, retry: retryBackoff}
}

// After says: it failed, try again after the given time, which whoever
// refused asked for. The condition becomes False.
func After(after time.Duration, reason string, err error) error {
	return &stepError{status: metav1.ConditionFalse, reason: reason, message: err.Error(), cause: err, retry: retryAfter, after: after}
}

// Invalid says: it will fail until somebody changes something. The condition
// becomes False, the object Stalled; nothing is retried before a change or
// the next resync.
func Invalid(reason string, err error) error {
	return &stepError{status: metav1.ConditionFalse, reason: reason, message: err.Error(), cause: err, retry: retryOnEvent, stalled: true}
}

// asStepError is err as a stepError, or nil for an error that only steers the engine.
func asStepError(err error) *stepError {
	if err == nil || errors.Is(err, ErrUnchanged) || errors.Is(err, ErrSkipped) {
		return nil
	}
	if e, ok := errors.AsType[*stepError](err); ok {
		return e
	}
	return &stepError{status: metav1.ConditionFalse, reason: ReasonError, message: err.Error(), cause: err, retry: retryBackoff}
}

// Amend changes the message of an error made by this package's constructors;
// other errors stay as they are, and so do those that report nothing.
func Amend(err error, amend func(message string) string) error {
	var e *stepError
	if !errors.As(err, &e) || e.status != metav1.ConditionFalse {
		return err
	}
	amended := *e
	amended.message = amend(e.message)
	return &amended
}
