//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// cgroupPrefix begins the names of nodes' cgroups; the id and the start time
	// of the owner's process follow, and what tells its nodes apart.
	cgroupPrefix = "bucketoperator-node-"

	// cgroupTimeout bounds how long the kernel may take to let go of the cgroup of
	// a process that is gone.
	cgroupTimeout = 10 * time.Second
	cgroupPoll    = 20 * time.Millisecond
)

// cgroup is the cgroup of a node: a folder of the same name in each hierarchy.
type cgroup []string

// newCgroup makes the cgroup of a node that this process owns.
func newCgroup(all []hierarchy) (made cgroup, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("making the node's cgroup: %w", err), made.removeNow())
		}
	}()
	started, err := startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	first, err := os.MkdirTemp(all[0].Parent, fmt.Sprintf("%s%d-%d-*", cgroupPrefix, os.Getpid(), started))
	if err != nil {
		return nil, err
	}
	made = cgroup{first}
	for _, h := range all[1:] {
		folder := filepath.Join(h.Parent, filepath.Base(first))
		if err := os.Mkdir(folder, 0o755); err != nil {
			return made, err
		}
		made = append(made, folder)
	}
	for i, h := range all {
		if err := h.endow(made[i]); err != nil {
			return made, err
		}
	}
	return made, nil
}

// join puts a process, as this process knows it, into the cgroup; 0 is this one.
func (c cgroup) join(pid int) error {
	for _, folder := range c {
		if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("joining a cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the cgroup and those below it. It waits until the kernel has let
// go of processes that are gone.
func (c cgroup) remove(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, cgroupPoll, cgroupTimeout, true, func(context.Context) (bool, error) {
		last = c.removeNow()
		return !errors.Is(last, syscall.EBUSY), nil
	})
	if err = errors.Join(last, err); err != nil {
		return fmt.Errorf("removing the node's cgroup: %w", err)
	}
	return nil
}

func (c cgroup) removeNow() error {
	var errs []error
	for _, folder := range c {
		errs = append(errs, removeTree(folder))
	}
	return errors.Join(errs...)
}

// removeTree removes a cgroup after those below it. The files in it go with it.
func removeTree(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(folder); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeAbandonedCgroups removes the cgroups of nodes whose owner was killed,
// wherever that was run. It is best effort: the kernel keeps what is in use.
func removeAbandonedCgroups(all []hierarchy) {
	for _, h := range all {
		_ = filepath.WalkDir(h.MountPoint, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil || !entry.IsDir():
				return nil //nolint:nilerr // it may just have gone
			case !strings.HasPrefix(entry.Name(), cgroupPrefix):
				return nil
			case cgroupAbandoned(entry.Name()):
				_ = removeTree(path)
			}
			return fs.SkipDir
		})
	}
}

// cgroupAbandoned tells whether the process that a cgroup is named after is gone.
// The start time tells it from a later one with the same id.
func cgroupAbandoned(name string) bool {
	var pid int
	var started uint64
	if n, err := fmt.Sscanf(name, cgroupPrefix+"%d-%d-", &pid, &started); n != 2 || err != nil {
		return false // not one of ours
	}
	now, err := startTime(pid)
	return err != nil || now != started
}

// startTime is in clock ticks since the machine started.
func startTime(pid int) (uint64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := process.Stat()
	return stat.Starttime, err
}
