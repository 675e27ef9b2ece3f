package testkit

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Patience is how long Eventually waits: far longer than anything takes, so
// that a slow machine fails no test.
const Patience = 3 * time.Minute

// Eventually waits until condition returns an empty string. What it returns
// until then is what the test fails with. It looks often at first, and less so
// at what takes longer.
func Eventually(t testing.TB, condition func(ctx context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	delays := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.3, Steps: 20, Cap: 100 * time.Millisecond}
	last := ""
	err := delays.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("still not so after %s: %s", Patience, last)
	}
}
