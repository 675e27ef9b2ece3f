package testnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
)

// Signal sends a signal to the process of a container in which program runs (its
// name as ps shows it) or, with an empty program, to the container's first
// process. A SIGKILL ends that, too: it comes from outside of the container. It
// skips the test on a cluster that is not the project's own node.
func Signal(t testing.TB, pod *corev1.Pod, container, program string, signal syscall.Signal) {
	t.Helper()
	NeedsOwnNode(t, "sending a signal to a process")
	pid, err := findProcess(t.Context(), t, pod, container, program)
	if err == nil {
		err = syscall.Kill(pid, signal)
	}
	if err != nil {
		t.Fatalf("sending %v to %s in pod %s: %v", signal, container, pod.Name, err)
	}
}

func findProcess(ctx context.Context, t testing.TB, pod *corev1.Pod, container, program string) (int, error) {
	status, err := ContainerStatus(ctx, t, pod, container)
	if err != nil {
		return 0, err
	}
	_, id, _ := strings.Cut(status.ContainerID, "://")
	if id == "" {
		return 0, errors.New("the container does not run")
	}
	processes, err := processesOf(id)
	if err != nil {
		return 0, err
	}
	for _, p := range processes {
		stat, err := p.Stat()
		if err != nil {
			continue // it has just ended
		}
		isFirst := !slices.ContainsFunc(processes, func(other procfs.Proc) bool { return other.PID == stat.PPID })
		if program == "" && isFirst || program != "" && stat.Comm == program {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("none of its %d processes is %q", len(processes), program)
}

// processesOf finds the processes of a pod or of a container: those in a cgroup
// whose path has its id as an element, or in one below.
func processesOf(id string) ([]procfs.Proc, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var found []procfs.Proc
	for _, p := range all {
		cgroups, err := p.Cgroups()
		if err != nil {
			continue // it has just ended
		}
		if slices.ContainsFunc(cgroups, func(c procfs.Cgroup) bool { return slices.Contains(strings.Split(c.Path, "/"), id) }) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no process is in a cgroup %s", id)
	}
	return found, nil
}
