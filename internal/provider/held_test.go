package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress"
)

func TestCallsThatAreHeldBackAreToldWhenToComeBack(t *testing.T) {
	t.Parallel()
	for limit, want := range map[egress.Limit]struct {
		reason string
		local  bool
	}{
		egress.LimitRate:      {"RateLimited", true},
		egress.LimitWindow:    {"ProviderBusy", true},
		egress.LimitNamespace: {"NamespaceBusy", true},
		egress.LimitQuiet:     {"ProviderThrottled", false},
	} {
		e := NotAdmitted(&egress.Error{Class: egress.HeldBack, Limit: limit, After: time.Second})
		if e.Class != Throttled || e.Reason != want.reason || e.Local != want.local || !e.Refused || e.After != time.Second || e.Message == "" {
			t.Errorf("%s is %#v", limit, e)
		}
	}
}

func TestACallBehindAnOpenCircuitRepeatsTheLastFailureAsOneThatWasNotSent(t *testing.T) {
	t.Parallel()
	last := &Error{Class: Transient, Reason: "ProviderUnavailable", Message: "it did not answer", Cause: ErrUnreachable}
	e := NotAdmitted(&egress.Error{Class: egress.Unreachable, Err: last})
	if e.Class != last.Class || e.Reason != last.Reason || e.Message != last.Message || !e.Refused {
		t.Errorf("error = %#v, want the last, refused", e)
	}
	if last.Refused {
		t.Error("the last failure was changed")
	}
}

func TestACallBehindTheFenceIsRefused(t *testing.T) {
	t.Parallel()
	if e := NotAdmitted(&egress.Error{Class: egress.Fenced, Err: errors.New("another leads")}); e.Class != Transient || !e.Refused || e.Reason != reasonFenced {
		t.Errorf("error = %#v", e)
	}
}

func TestWhatAResultShowsOfTheProvider(t *testing.T) {
	t.Parallel()
	unreachable := &Error{Class: Transient, Cause: fmt.Errorf("%w: refused", ErrUnreachable)}
	for name, tc := range map[string]struct {
		err  error
		want egress.Outcome
	}{
		"success":                        {nil, egress.Answered()},
		"an error that is an answer":     {&Error{Class: Transient, Reason: "ProviderUnavailable"}, egress.Answered()},
		"a refusal":                      {&Error{Class: Terminal}, egress.Answered()},
		"a wish for fewer calls":         {&Error{Class: Throttled, After: time.Hour}, egress.AnsweredQuiet(time.Hour)},
		"a wish without a time":          {&Error{Class: Throttled}, egress.Answered()},
		"no answer":                      {unreachable, egress.Failed(unreachable)},
		"a call that was given up":       {&Error{Class: Transient, Cause: context.Canceled}, egress.Outcome{}},
		"a call that the fence held off": {&Error{Class: Transient, Cause: &egress.Error{Class: egress.Fenced}}, egress.Outcome{}},
		"an error of another kind":       {errors.New("boom"), egress.Outcome{}},
	} {
		if got := OutcomeOf(tc.err); got != tc.want {
			t.Errorf("%s shows %+v, want %+v", name, got, tc.want)
		}
	}
}
