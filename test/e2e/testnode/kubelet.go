package testnode

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
)

// FreezeKubelet stops the kubelet in its tracks: pods run on, nobody looks after
// them, and after 20 to 30 seconds the node counts as not ready. It goes on when
// thaw is called, and at the test's end. It skips the test on a cluster that is
// not the project's own node.
func FreezeKubelet(t testing.TB) (thaw func()) {
	t.Helper()
	NeedsOwnNode(t, "freezing the kubelet")
	pid, err := kubelet()
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		t.Fatalf("freezing the kubelet: %v", err)
	}
	thaw = func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Errorf("thawing the kubelet: %v", err)
		}
	}
	t.Cleanup(thaw)
	return thaw
}

func kubelet() (pid int, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		name, err := p.Comm()
		if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ESRCH) {
			return 0, fmt.Errorf("looking at process %d: %w", p.PID, err)
		}
		if name == "kubelet" {
			return p.PID, nil
		}
	}
	return 0, errors.New("no process of that name")
}
