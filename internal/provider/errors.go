package provider

import (
	"errors"
	"fmt"
	"time"
)

// Class is what a failed call means for whoever made it.
type Class string

const (
	// NotFound means that the bucket does not exist. Only a Get answers so.
	NotFound Class = "NotFound"
	// Terminal means that the same call will fail again until the spec, the
	// configuration or the credentials change.
	Terminal Class = "Terminal"
	// Unauthorized means that the credentials were refused.
	Unauthorized Class = "Unauthorized"
	// Unsupported means that this provider does not know the call.
	Unsupported Class = "Unsupported"
	// Throttled means that the call may be repeated after Error.After.
	Throttled Class = "Throttled"
	// Transient is everything else: try again later.
	Transient Class = "Transient"
)

// Sentinels to match a Class with errors.Is.
var (
	ErrNotFound     = &Error{Class: NotFound}
	ErrTerminal     = &Error{Class: Terminal}
	ErrUnauthorized = &Error{Class: Unauthorized}
	ErrUnsupported  = &Error{Class: Unsupported}
	ErrThrottled    = &Error{Class: Throttled}
	ErrTransient    = &Error{Class: Transient}
)

// ReasonSpecRefused is the reason of a Terminal error by which the provider
// itself has judged the spec and refused it.
const ReasonSpecRefused = "SpecRefused"

// Error is how a call to a provider failed.
type Error struct {
	// Class is what the failure means.
	Class Class
	// Reason is a CamelCase word that fits a condition, such as
	// ProviderUnavailable or CertificateInvalid.
	Reason string
	// Message tells a person what happened and what to do. It is free of
	// secrets, request ids and times, so that the same trouble reads the same.
	Message string
	// After is how long to wait before the next try; 0 when the provider did
	// not say. Only for Throttled.
	After time.Duration
	// Refused is true when it is certain that the call changed nothing at the
	// provider: it was never sent, or it was answered with a refusal.
	Refused bool
	// Conflict is true when the refusal may be about an earlier call under the
	// same idempotency key that the provider is still at work on. Whoever may
	// have made such a call asks again before believing that nothing was made.
	Conflict bool
	// Local is true when the call was held back on this side, by the limits of the
	// configuration or the namespace's share of the calls in flight.
	Local bool
	// Cause is the underlying error, for the log; may be nil.
	Cause error
}

// Error is the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("provider: %s", e.Class)
	}
	return e.Message
}

// Unwrap is the underlying error.
func (e *Error) Unwrap() error { return e.Cause }

// Is matches the sentinels, by class.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == "" && t.Message == "" && t.Class == e.Class
}

// AsError is err as an *Error; an error of another type becomes a Transient
// one, as nothing is known of it.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: Transient, Reason: "ProviderError", Message: "calling the provider failed", Cause: err}
}
