package egress

import (
	"errors"
	"fmt"
	"time"
)

// Class is why a call was not let out.
type Class string

const (
	// HeldBack means that a limit was reached: see Error.Limit. The same call may
	// be made after Error.After.
	HeldBack Class = "HeldBack"
	// Unreachable means that the last calls did not reach the destination. Error.Err
	// is what came of the last, as it was told.
	Unreachable Class = "Unreachable"
	// AddressRefused means that the address must not be connected to. Error.Err is
	// a *guard.RefusedError.
	AddressRefused Class = "AddressRefused"
	// Fenced means that another process may lead by now. Error.Err is the fence's word.
	Fenced Class = "Fenced"
)

// Limit is which limit holds a call back. It is a label of a metric.
type Limit string

const (
	// LimitRate is how many calls a second a destination gets.
	LimitRate Limit = "rate"
	// LimitWindow is how many calls to a destination may be in flight.
	LimitWindow Limit = "window"
	// LimitNamespace is how many calls for one namespace may be in flight.
	LimitNamespace Limit = "namespace"
	// LimitQuiet is the destination's own wish for no calls.
	LimitQuiet Limit = "quiet"
)

// Error is why a call was not let out. The call has certainly changed nothing,
// unless it is the error of a write on a connection on which others went before.
type Error struct {
	Class Class
	// Limit is which limit was reached. Only for HeldBack.
	Limit Limit
	// After is when the call may be made, from now. Only for HeldBack.
	After time.Duration
	// Err is what is behind it; nil for HeldBack.
	Err error
}

// Error says in a few words why the call was not let out.
func (e *Error) Error() string {
	switch e.Class {
	case HeldBack:
		return fmt.Sprintf("the call is held back by the limit %s", e.Limit)
	case Fenced:
		return fmt.Sprintf("nothing is sent: %v", e.Err)
	case Unreachable, AddressRefused:
	}
	return fmt.Sprint(e.Err)
}

// Unwrap is what is behind it.
func (e *Error) Unwrap() error { return e.Err }

// IsFenced tells whether err says that another process may lead by now.
func IsFenced(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Class == Fenced
}

func heldBack(limit Limit, after time.Duration) *Error {
	return &Error{Class: HeldBack, Limit: limit, After: after}
}
