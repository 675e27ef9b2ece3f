package provider

import (
	"context"
	"errors"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress"
)

// ErrUnreachable is among the causes of an Error when the provider could not
// be reached, or did not answer in time. It is what opens a circuit. An answer
// that tells of an error is an answer.
var ErrUnreachable = errors.New("the provider was not reached")

// reasonFenced is the reason of calls that are not made, as another may lead.
const reasonFenced = "NotLeading"

// NotAdmitted is the Error of a call that package egress did not let out.
func NotAdmitted(err error) *Error {
	e, ok := errors.AsType[*egress.Error](err)
	if !ok {
		return AsError(err)
	}
	switch e.Class {
	case egress.HeldBack:
		return heldBack(e.Limit, e.After)
	case egress.Unreachable:
		// Word for word, so that a condition made of it stays as it is.
		last := *AsError(e.Err)
		last.Refused = true
		return &last
	case egress.Fenced:
		return &Error{
			Class: Transient, Reason: reasonFenced, Refused: true, Cause: e,
			Message: "the call is not made, as another replica of the operator may lead by now",
		}
	case egress.AddressRefused:
	}
	return AsError(err)
}

// heldBack is the Error of a call that a limit holds back for now.
func heldBack(limit egress.Limit, after time.Duration) *Error {
	e := &Error{Class: Throttled, Refused: true, Local: limit != egress.LimitQuiet, After: after}
	switch limit {
	case egress.LimitRate:
		e.Reason, e.Message = "RateLimited", "the rate limit for calls to the provider is used up: this one waits for its turn"
	case egress.LimitWindow:
		e.Reason, e.Message = "ProviderBusy", "enough calls to the provider are under way: this one waits for its turn"
	case egress.LimitNamespace:
		e.Reason, e.Message = "NamespaceBusy", "enough calls for this namespace are under way, to all providers: this one waits for its turn"
	case egress.LimitQuiet:
		e.Reason, e.Message = "ProviderThrottled", "the provider asks for fewer calls"
	}
	return e
}

// OutcomeOf is what the result of a call shows of the provider.
func OutcomeOf(err error) egress.Outcome {
	e, isError := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return egress.Answered()
	case isError && errors.Is(err, ErrUnreachable):
		return egress.Failed(e)
	case !isError, egress.IsFenced(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return egress.Outcome{}
	}
	if e.Class == Throttled && e.After > 0 {
		return egress.AnsweredQuiet(e.After)
	}
	return egress.Answered()
}
