package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestErrorMatchesTheSentinelOfItsClass(t *testing.T) {
	t.Parallel()
	sentinels := []*Error{ErrNotFound, ErrTerminal, ErrUnauthorized, ErrUnsupported, ErrThrottled, ErrTransient}
	for _, sentinel := range sentinels {
		err := fmt.Errorf("calling: %w", &Error{Class: sentinel.Class, Reason: "Some", Message: "words"})
		for _, other := range sentinels {
			if got, want := errors.Is(err, other), other == sentinel; got != want {
				t.Errorf("errors.Is(%s, %s) = %v, want %v", sentinel.Class, other.Class, got, want)
			}
		}
	}
}

func TestErrorMatchesItsCause(t *testing.T) {
	t.Parallel()
	if err := (&Error{Class: Transient, Cause: context.Canceled}); !errors.Is(err, context.Canceled) {
		t.Error("the cause is hidden")
	}
}

func TestAsErrorKnowsNothingOfOtherErrors(t *testing.T) {
	t.Parallel()
	e := AsError(errors.New("boom"))
	if e.Class != Transient || e.Refused || e.Reason == "" {
		t.Errorf("AsError = %#v, want Transient, not Refused", e)
	}
}
