package localcluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// testTimeout bounds what tests wait for; a machine under load is slow.
	testTimeout = 2 * time.Minute
	testPoll    = 50 * time.Millisecond
)

// processContext is for what outlives the test that starts it.
var processContext = context.Background()

// stopShared stops the shared cluster, if any test has started it.
var stopShared = func() error { return nil }

// shared is one cluster for all tests that do not stop theirs.
var shared = sync.OnceValues(func() (*Cluster, error) {
	cluster, err := Start(processContext, Options{Progress: os.Stderr, CRDs: []string{"testdata"}})
	if err == nil {
		stopShared = cluster.Stop
	}
	return cluster, err
})

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		actAsParent()
		return
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func sharedCluster(t *testing.T) *Cluster {
	t.Helper()
	cluster, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// start runs a cluster of the test's own.
func start(t *testing.T, opts Options) *Cluster {
	t.Helper()
	opts.Progress = os.Stderr
	cluster, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// eventually fails the test when the condition does not come true in time.
func eventually(t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), testPoll, testTimeout, true, condition); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}
