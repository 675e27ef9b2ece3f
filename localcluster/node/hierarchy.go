//go:build linux

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// hierarchy is a mounted cgroup file system. A machine with cgroup v1 has one
// for each controller or few of them, one with v2 has a single one.
type hierarchy struct {
	MountPoint string
	FSType     string
	// Options name the controllers, in v1.
	Options []string
	// Parent is the folder that nodes' cgroups are made in.
	Parent string
}

func (h hierarchy) isV2() bool { return h.FSType == "cgroup2" }

// hierarchies are those in which this process has a cgroup that it can see.
func hierarchies() ([]hierarchy, error) {
	self, err := procfs.Self()
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	cgroups, err := self.Cgroups()
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil, fmt.Errorf("finding cgroups: %w", err)
	}
	var found []hierarchy
	for _, mount := range mounts {
		if mount.FSType != "cgroup" && mount.FSType != "cgroup2" {
			continue
		}
		i := slices.IndexFunc(cgroups, func(c procfs.Cgroup) bool { return isMountOf(mount, c) })
		if i < 0 {
			continue
		}
		below, err := filepath.Rel(mount.Root, cgroups[i].Path)
		if err != nil || strings.HasPrefix(below, "..") {
			return nil, fmt.Errorf("finding cgroups: the mount at %s does not show the cgroup %s of this process", mount.MountPoint, cgroups[i].Path)
		}
		h := hierarchy{
			MountPoint: mount.MountPoint,
			FSType:     mount.FSType,
			Options:    cgroupOptions(cgroups[i].Controllers),
			// In v1, what this process may use is what its node may use.
			Parent: filepath.Join(mount.MountPoint, below),
		}
		if h.isV2() {
			// In v2, a cgroup that has processes, as this one's, gives its children
			// nothing to use.
			h.Parent = mount.MountPoint
		}
		found = append(found, h)
	}
	if len(found) == 0 {
		return nil, errors.New("finding cgroups: no cgroup file system is mounted")
	}
	return found, nil
}

// isMountOf tells whether the mount shows the hierarchy of the cgroup.
func isMountOf(mount *procfs.MountInfo, cgroup procfs.Cgroup) bool {
	if len(cgroup.Controllers) == 0 {
		return mount.FSType == "cgroup2"
	}
	return !slices.ContainsFunc(cgroup.Controllers, func(controller string) bool {
		key, value, _ := strings.Cut(controller, "=")
		got, ok := mount.SuperOptions[key]
		return !ok || got != value
	})
}

// cgroupOptions are the mount options of a hierarchy: nothing for v2.
func cgroupOptions(controllers []string) []string {
	if len(controllers) > 0 && strings.HasPrefix(controllers[0], "name=") {
		return append([]string{"none"}, controllers...) // named, and without controllers
	}
	return controllers
}

// endow gives a new cgroup what its parent has to use.
func (h hierarchy) endow(folder string) error {
	if h.isV2() {
		return enableControllers(filepath.Dir(folder))
	}
	return fillCpuset(folder)
}

// enableControllers lets the children of a cgroup of v2 have all its controllers.
func enableControllers(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "cgroup.controllers"))
	if err != nil {
		return err
	}
	controllers := strings.Fields(string(text))
	if len(controllers) == 0 {
		return nil // v1 has them all
	}
	err = os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), []byte("+"+strings.Join(controllers, " +")), 0)
	if errors.Is(err, unix.EBUSY) {
		// Only the machine's own root may have both processes and children that use
		// something. That of a container is not one, and what runs there is not ours to move.
		return fmt.Errorf("%w: processes run in the cgroup %s itself: move them into one below it, "+
			"as in: mkdir %[2]s/init && xargs -rn1 < %[2]s/cgroup.procs > %[2]s/init/cgroup.procs", err, folder)
	}
	return err
}

// fillCpuset gives a cgroup of the v1 controller cpuset what its parent has: a
// new one has no processor, and takes no process. It leaves others as they are.
func fillCpuset(folder string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(own)) != "" {
			continue
		}
		if err != nil {
			return err
		}
		parents, err := os.ReadFile(filepath.Join(filepath.Dir(folder), name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), parents, 0); err != nil {
			return err
		}
	}
	return nil
}
