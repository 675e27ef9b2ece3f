package testnode

import (
	"context"
	"fmt"
	"testing"

	"avalonhosting.example/bucketoperator/internal/testkit"
)

// Eventually calls the condition until it returns nil, and fails the test when
// that takes too long, with the last error that it returned.
func Eventually(t testing.TB, what string, condition func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, func(ctx context.Context) string {
		if err := condition(ctx); err != nil {
			return fmt.Sprintf("waiting until %s: %v", what, err)
		}
		return ""
	})
}

// unlike is the error of a condition that is not met yet.
func unlike[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("%s is %v, want %v", what, got, want)
}
