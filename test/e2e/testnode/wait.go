package testnode

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// waitTimeout bounds what tests wait for: many times what it takes, for machines
	// under load.
	waitTimeout = 3 * time.Minute
	waitPoll    = 200 * time.Millisecond
)

// Eventually calls the condition until it returns nil, and fails the test when
// that takes longer than three minutes, with the last error that it returned.
func Eventually(t testing.TB, what string, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), waitPoll, waitTimeout, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v; at last: %v", what, err, last)
	}
}

// unlike is the error of a condition that is not met yet.
func unlike[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}
