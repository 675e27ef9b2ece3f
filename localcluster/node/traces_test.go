//go:build linux

package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

// traces are what a node that runs can be seen by on the machine.
type traces struct {
	// Namespaces of the node and of its containers, as /proc shows them:
	// "net:[4026532182]".
	Namespaces []string
	// Processes are how many there were.
	Processes int
	// Cgroup is its name.
	Cgroup string
	Dir    string
}

func tracesOf(n *Node) (traces, error) {
	pids, err := cgroupProcesses(n.cgroup[0])
	if err != nil {
		return traces{}, err
	}
	machine := namespacesOf(os.Getpid())
	found := traces{Processes: len(pids), Cgroup: filepath.Base(n.cgroup[0]), Dir: n.Dir()}
	for _, pid := range pids {
		for _, namespace := range namespacesOf(pid) {
			if !slices.Contains(machine, namespace) && !slices.Contains(found.Namespaces, namespace) {
				found.Namespaces = append(found.Namespaces, namespace)
			}
		}
	}
	return found, nil
}

// cgroupProcesses are those in the cgroup and in those below it.
func cgroupProcesses(folder string) ([]int, error) {
	var pids []int
	return pids, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "cgroup.procs" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			pids = append(pids, pid)
		}
		return nil
	})
}

// namespacesOf leaves out those of a process that is just going.
func namespacesOf(pid int) []string {
	var found []string
	for _, kind := range []string{"net", "mnt", "pid", "ipc", "uts", "cgroup"} {
		if namespace, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", kind)); err == nil {
			found = append(found, namespace)
		}
	}
	return found
}

// tracesOfRunning fails when a node that runs is not seen: the checks for what is
// left would find nothing either.
func tracesOfRunning(t *testing.T, n *Node) traces {
	t.Helper()
	found, err := tracesOf(n)
	if err != nil {
		t.Fatal(err)
	}
	found.expectSome(t)
	return found
}

func (tr traces) expectSome(t *testing.T) {
	t.Helper()
	// Process 1, the supervisor, seven programs, the shim of a pod and its two
	// processes, which have namespaces of their own.
	if tr.Processes < 12 || len(tr.Namespaces) < 9 {
		t.Errorf("of a node that runs, %d processes and %d namespaces are seen", tr.Processes, len(tr.Namespaces))
	}
	if len(tr.cgroups(t)) == 0 {
		t.Errorf("no cgroup %s is seen of a node that runs", tr.Cgroup)
	}
}

// processes are those in the namespaces of the node or of its containers.
func (tr traces) processes(t *testing.T) []int {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	var inside []int
	for _, p := range all {
		if slices.ContainsFunc(namespacesOf(p.PID), func(n string) bool { return slices.Contains(tr.Namespaces, n) }) {
			inside = append(inside, p.PID)
		}
	}
	return inside
}

// cgroups are the node's, in all hierarchies.
func (tr traces) cgroups(t *testing.T) []string {
	t.Helper()
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, h := range all {
		err := filepath.WalkDir(h.MountPoint, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Name() == tr.Cgroup {
				found = append(found, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// expectNoProcess waits until nothing runs in the node's namespaces. Without a
// process, and without a mount that holds it, the kernel drops a namespace with
// all its interfaces and mounts.
func (tr traces) expectNoProcess(t *testing.T) {
	t.Helper()
	eventually(t, "no process of the node is left", func() bool { return len(tr.processes(t)) == 0 })
	mounts, err := procfs.GetMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, mount := range mounts {
		if mount.FSType == "nsfs" || strings.HasPrefix(mount.MountPoint, tr.Dir+"/") || mount.MountPoint == cniCache {
			t.Errorf("left behind: the mount of %s at %s", mount.FSType, mount.MountPoint)
		}
	}
}

func (tr traces) expectNoCgroup(t *testing.T) {
	t.Helper()
	if left := tr.cgroups(t); len(left) > 0 {
		t.Errorf("left behind: the cgroups %v", left)
	}
}

func expectGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: %v, want that it is gone", path, err)
	}
}
