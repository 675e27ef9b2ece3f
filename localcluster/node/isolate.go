//go:build linux

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hidden are the folders of this machine that a node has its own of.
var hidden = []struct{ folder, fsType, data string }{
	// The processes of the node's own namespace.
	{"/proc", "proc", ""},
	// Sockets, locks and states of shims and runc: they end with the node. That of
	// systemd's bus is not there either, so nothing asks it for scopes.
	{"/run", "tmpfs", "mode=0755"},
	// The kubelet links container logs here.
	{"/var/log", "tmpfs", "mode=0755"},
	{cniCache, "tmpfs", "mode=0755"},
}

// cniCache is where the CNI library that containerd links keeps results: it
// cannot be told otherwise.
const cniCache = "/var/lib/cni"

// isolateMounts gives the node, in its own mount namespace, the file systems that
// must not be the machine's, and its folder at a short path.
func isolateMounts(s spec) error {
	// From here on, no mount or unmount gets out or in.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	for _, m := range hidden {
		if err := unix.Mount(m.fsType, m.folder, m.fsType, unix.MS_NOSUID|unix.MS_NODEV, m.data); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", m.fsType, m.folder, err)
		}
	}
	if err := os.Mkdir(string(mounted), 0o700); err != nil {
		return fmt.Errorf("making the mount point of the node's folder: %w", err)
	}
	if err := unix.Mount(s.Folder, string(mounted), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting the node's folder at %s: %w", mounted, err)
	}
	return isolateCgroups(s.Hierarchies)
}

// isolateCgroups shows the node its own cgroup as the root. /sys itself stays as
// it is: a fresh one would have no cgroups mounted in it.
func isolateCgroups(machine []hierarchy) error {
	for _, h := range machine {
		// The same file system cannot be mounted twice at one place.
		if err := unix.Unmount(h.MountPoint, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting the machine's cgroups at %s: %w", h.MountPoint, err)
		}
		if err := unix.Mount("cgroup", h.MountPoint, h.FSType, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, strings.Join(h.Options, ",")); err != nil {
			return fmt.Errorf("mounting the node's cgroups at %s: %w", h.MountPoint, err)
		}
	}
	return moveIntoLeaf(machine)
}

// moveIntoLeaf moves the node's first processes out of the root of its cgroups:
// in cgroup v2, one with processes cannot share out its resources.
func moveIntoLeaf(machine []hierarchy) error {
	var leaf cgroup
	for _, h := range machine {
		folder := filepath.Join(h.MountPoint, "node")
		if err := os.Mkdir(folder, 0o755); err != nil {
			return fmt.Errorf("making the cgroup of the node's own processes: %w", err)
		}
		if !h.isV2() { // there, the kubelet sees to it once the root has no process
			if err := fillCpuset(folder); err != nil {
				return fmt.Errorf("making the cgroup of the node's own processes: %w", err)
			}
		}
		leaf = append(leaf, folder)
	}
	for _, pid := range []int{1, os.Getpid()} {
		if err := leaf.join(pid); err != nil {
			return err
		}
	}
	return nil
}
