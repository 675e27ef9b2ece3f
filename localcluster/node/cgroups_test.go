//go:build linux

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"
)

// folderOf makes a folder with those files, as of a cgroup.
func folderOf(t *testing.T, parent string, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(parent, fmt.Sprint("cgroup-", len(files)))
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func expectFile(t *testing.T, folder, name, want string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != want {
		t.Errorf("%s is %q, want %q", name, text, want)
	}
}

func TestMountsAreMatchedWithCgroups(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fsType      string
		options     map[string]string
		controllers []string
		want        bool
	}{
		"one controller":          {"cgroup", map[string]string{"rw": "", "memory": ""}, []string{"memory"}, true},
		"two at one place":        {"cgroup", map[string]string{"rw": "", "cpu": "", "cpuacct": ""}, []string{"cpu", "cpuacct"}, true},
		"another controller":      {"cgroup", map[string]string{"rw": "", "cpu": ""}, []string{"memory"}, false},
		"named":                   {"cgroup", map[string]string{"rw": "", "name": "systemd"}, []string{"name=systemd"}, true},
		"named otherwise":         {"cgroup", map[string]string{"rw": "", "name": "openrc"}, []string{"name=systemd"}, false},
		"v2":                      {"cgroup2", map[string]string{"rw": ""}, nil, true},
		"v2 for a controller's":   {"cgroup2", map[string]string{"rw": ""}, []string{"memory"}, false},
		"v1 for the unified path": {"cgroup", map[string]string{"rw": "", "memory": ""}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := isMountOf(&procfs.MountInfo{FSType: test.fsType, SuperOptions: test.options}, procfs.Cgroup{Controllers: test.controllers})
			if got != test.want {
				t.Errorf("matched: %t, want %t", got, test.want)
			}
		})
	}
}

func TestMountOptionsNameTheHierarchy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ controllers, want []string }{
		"controllers": {[]string{"cpu", "cpuacct"}, []string{"cpu", "cpuacct"}},
		"named":       {[]string{"name=systemd"}, []string{"none", "name=systemd"}},
		"v2":          {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, cgroupOptions(test.controllers)); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChildrenOfACgroupOfV2GetItsControllers(t *testing.T) {
	t.Parallel()
	parent := folderOf(t, t.TempDir(), map[string]string{"cgroup.controllers": "cpu memory pids\n"})
	if err := (hierarchy{FSType: "cgroup2"}).endow(folderOf(t, parent, nil)); err != nil {
		t.Fatal(err)
	}
	expectFile(t, parent, "cgroup.subtree_control", "+cpu +memory +pids")
}

func TestCpusetIsFilledFromTheParent(t *testing.T) {
	t.Parallel()
	parent := folderOf(t, t.TempDir(), map[string]string{"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n"})
	folder := folderOf(t, parent, map[string]string{"cpuset.cpus": "\n", "cpuset.mems": "1\n"})
	if err := (hierarchy{FSType: "cgroup"}).endow(folder); err != nil {
		t.Fatal(err)
	}
	expectFile(t, folder, "cpuset.cpus", "0-1\n")
	expectFile(t, folder, "cpuset.mems", "1\n") // it had one
}

func TestCgroupIsAbandonedWhenItsOwnerIsGone(t *testing.T) {
	t.Parallel()
	started, err := startTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		fmt.Sprintf("%s%d-%d-1", cgroupPrefix, os.Getpid(), started):   false,
		fmt.Sprintf("%s%d-%d-1", cgroupPrefix, os.Getpid(), started-1): true, // an older process of the same id
		fmt.Sprintf("%s%d-%d-1", cgroupPrefix, gone.Process.Pid, 1):    true,
		cgroupPrefix + "by-hand": false,
	} {
		if got := cgroupAbandoned(name); got != want {
			t.Errorf("%s is abandoned: %t, want %t", name, got, want)
		}
	}
}
