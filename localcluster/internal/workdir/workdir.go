// Package workdir gives a cluster the folder that it works in, locked while it
// runs, and removes the temporary ones of those that were killed.
package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

const (
	tempPrefix = "bucketoperator-cluster-"
	lockName   = "lock"
)

// Dir is the folder of one cluster, locked while it runs.
type Dir struct {
	Path string

	lock      *flock.Flock
	temporary bool
}

// Open takes the folder given, or makes a temporary one when it is empty.
func Open(path string) (*Dir, error) {
	if path == "" {
		RemoveAbandoned(os.TempDir())
		return makeTempDir(os.TempDir())
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, err
	}
	return &Dir{Path: path, lock: lock}, nil
}

// makeTempDir gives the folder the name that RemoveAbandoned looks for only
// once it is locked: no other process takes it for abandoned in between.
func makeTempDir(parent string) (*Dir, error) {
	unlocked, err := os.MkdirTemp(parent, ".new-"+tempPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(unlocked)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(unlocked))
	}
	path := filepath.Join(parent, filepath.Base(unlocked)[len(".new-"):])
	if err := os.Rename(unlocked, path); err != nil {
		return nil, errors.Join(err, lock.Close(), os.RemoveAll(unlocked))
	}
	return &Dir{Path: path, lock: lock, temporary: true}, nil
}

func lockDir(path string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(path, lockName))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !locked {
		return nil, fmt.Errorf("another cluster runs in %s", path)
	}
	return lock, nil
}

// Close unlocks the folder, and removes it if it is temporary.
func (d *Dir) Close() error {
	var removed error
	if d.temporary {
		removed = os.RemoveAll(d.Path)
	}
	return errors.Join(removed, d.lock.Close())
}

// RemoveAbandoned removes temporary folders whose process ended without doing
// so (a panic in a test, SIGKILL): those whose lock nobody holds. It is best
// effort: what cannot be locked or removed is another's to worry about.
func RemoveAbandoned(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*"))
	for _, path := range paths {
		// A link could lead anywhere.
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		lock := flock.New(filepath.Join(path, lockName), flock.SetFlag(os.O_RDONLY))
		if locked, err := lock.TryLock(); err == nil && locked {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}
