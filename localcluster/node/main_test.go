//go:build linux

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// startsEnv, when set, has the tests run that start nodes: `make e2e` sets it.
	startsEnv = "BUCKETOPERATOR_TEST_NODES"
	// ownerEnv makes the test binary start a node in the folder named, print the
	// traces of it, and then stay until it is killed.
	ownerEnv = "BUCKETOPERATOR_TEST_NODE_OWNER"

	// testTimeout bounds what tests wait for; a machine under load is slow.
	testTimeout = 2 * time.Minute
	testPoll    = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	Inside()
	if dir := os.Getenv(ownerEnv); dir != "" {
		actAsOwner(dir)
	}
	os.Exit(m.Run())
}

func actAsOwner(dir string) {
	n, err := Start(context.Background(), Options{Dir: dir, Progress: os.Stderr})
	if err == nil {
		var seen traces
		if seen, err = tracesOf(n); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(seen)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// needsNode skips a test that starts a node where that was not asked for.
func needsNode(t *testing.T) {
	t.Helper()
	if os.Getenv(startsEnv) == "" {
		t.Skipf("starts a node, which needs root and a long first build: `make e2e` runs it, or set %s", startsEnv)
	}
}

func start(t *testing.T, opts Options) *Node {
	t.Helper()
	needsNode(t)
	opts.Progress = os.Stderr
	n, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// eventually fails the test when the condition does not come true in time.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), testPoll, testTimeout, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Errorf("waiting until %s: %v", what, err)
	}
}
