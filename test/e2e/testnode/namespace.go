package testnode

import (
	"context"
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// diagnoseTimeout bounds how long it may take to find out about a failed test.
const diagnoseTimeout = time.Minute

// Namespace makes a namespace with a name of its own, and returns the name. At the
// test's end it is deleted, without waiting until it is gone. If the test failed,
// what Diagnose finds is logged before.
func Namespace(t testing.TB) string {
	t.Helper()
	namespace := testplane.NamespaceOf(t, Config())
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		// The test's context is over by now.
		ctx, cancel := context.WithTimeout(context.Background(), diagnoseTimeout)
		defer cancel()
		t.Log(Diagnose(ctx, namespace))
	})
	return namespace
}
