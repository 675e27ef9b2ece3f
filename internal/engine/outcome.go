package engine

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrStale is returned by a Pass when the object has changed since the pass
// read it. A step returns it as it is: nothing is reported, and the engine runs
// the pass again soon.
var ErrStale = errors.New("the object has changed since it was read")

// verdict is what an Outcome says.
type verdict int

const (
	verdictDone       verdict = iota
	verdictInProgress         // on its way, no failure
	verdictBlocked            // something else is missing
	verdictFailed             // is tried again
	verdictTerminal           // cannot be carried out
	verdictRequeue            // comes back without a word
	verdictUnchanged          // the condition already says how it is
	verdictSkipped            // an earlier step is not done
)

// Outcome is how a step fared. It is an error too, so that the functions of a
// step can return one where they stop; From makes an Outcome of what they return.
type Outcome struct {
	verdict verdict
	reason  string
	message string
	cause   error
	after   time.Duration
	stalled bool
}

// Done says: as it should be. The condition becomes True, with the reason. The
// next pass comes at the next event or resync, or when RecheckAfter says.
func Done(reason string) Outcome { return Outcome{verdict: verdictDone, reason: reason} }

// InProgress says: on its way, no failure. The condition gets the status that
// the step has for this, Unknown unless it says otherwise. The next pass comes at an
// event or, where no event will tell, when After says.
func InProgress(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictInProgress, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Blocked says: something that somebody else has to provide is missing. The
// condition becomes False. The next pass comes at an event; because an event may
// be missed, or there may be none, the engine also looks again by itself, in
// 15 s at first and then less and less often, up to every 5 minutes.
func Blocked(reason, format string, args ...any) Outcome {
	return Outcome{verdict: verdictBlocked, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Failed says: it failed and is tried again. The condition becomes False. The
// delay is the step's own: it doubles with each failure in a row. Until it has
// passed, the step is not run again unless an event tells of a change; other
// steps are.
func Failed(reason string, err error) Outcome {
	return Outcome{verdict: verdictFailed, reason: reason, message: err.Error(), cause: err}
}

// Terminal says: this spec cannot be carried out. The condition becomes False,
// the object Stalled. The next pass comes when something changes, or at the resync.
func Terminal(reason string, err error) Outcome {
	return Outcome{verdict: verdictTerminal, reason: reason, message: err.Error(), cause: err, stalled: true}
}

// Requeue says: come back after the given time, there is nothing to report. It
// keeps short waits out of the status, where each would cost a write.
func Requeue(after time.Duration) Outcome {
	return Outcome{verdict: verdictRequeue, reason: ReasonPending, message: "waiting"}.After(after)
}

// Unchanged says: the status already tells how this step fared, and there was
// nothing to do. The condition stays as it is and counts as it is.
func Unchanged() Outcome { return Outcome{verdict: verdictUnchanged, message: "unchanged"} }

// Skipped says: nothing can be said as an earlier step is not done. The
// condition stays as it is.
func Skipped() Outcome { return Outcome{verdict: verdictSkipped, message: "skipped"} }

// After sets when the step is to be run again at the latest. For a failure it
// takes the place of the growing delay: whoever refused has said when to come
// back. A time of 0 or less means at once.
func (o Outcome) After(after time.Duration) Outcome {
	o.after = max(after, time.Millisecond)
	return o
}

// RecheckAfter is After, for a step that is done and wants to look again.
func (o Outcome) RecheckAfter(after time.Duration) Outcome { return o.After(after) }

// Stalled makes a Blocked outcome one that a person has to do something about:
// the object is Stalled, as with Terminal.
func (o Outcome) Stalled() Outcome {
	o.stalled = true
	return o
}

// Error is the message of an Outcome that stops a step.
func (o Outcome) Error() string { return o.message }

// Unwrap is the error that the Outcome was made of; nil if there was none.
func (o Outcome) Unwrap() error { return o.cause }

// From is err as an Outcome: done where err is nil, the Outcome that is among
// its causes, or a failure with ReasonError for an error of any other kind.
func From(err error, done Outcome) Outcome {
	if err == nil {
		return done
	}
	if o, ok := errors.AsType[Outcome](err); ok {
		return o
	}
	return Failed(ReasonError, err)
}

// AmendMessage changes the message of an Outcome that makes a condition False;
// other errors stay as they are.
func AmendMessage(err error, amend func(message string) string) error {
	o, ok := errors.AsType[Outcome](err)
	if !ok || o.status(Step{}) != metav1.ConditionFalse {
		return err
	}
	o.message = amend(o.message)
	return o
}

// status is what the Outcome makes of the step's condition.
func (o Outcome) status(step Step) metav1.ConditionStatus {
	switch o.verdict {
	case verdictDone:
		return metav1.ConditionTrue
	case verdictInProgress:
		if step.InProgress != "" {
			return step.InProgress
		}
	case verdictBlocked, verdictFailed, verdictTerminal:
		return metav1.ConditionFalse
	case verdictRequeue, verdictUnchanged, verdictSkipped:
	}
	return metav1.ConditionUnknown
}

// isDone tells whether the next step may build on this one.
func (o Outcome) isDone() bool { return o.verdict == verdictDone }

// silent tells whether the Outcome leaves the conditions as they are.
func (o Outcome) silent() bool {
	return o.verdict == verdictRequeue || o.verdict == verdictUnchanged || o.verdict == verdictSkipped
}
