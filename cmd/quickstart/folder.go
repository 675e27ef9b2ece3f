package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

var errBusy = errors.New("another quickstart")

// folder is the folder of all that a quickstart makes, locked while it runs.
// The lock is on the folder itself, so that no lock file is left behind; the
// system drops it with the process.
type folder struct {
	path string
	lock *os.File
}

// openFolder takes the folder, and empties it: one that was killed could not.
func openFolder(path string) (*folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w already runs in %s: end that one first, or give --dir", errBusy, path)
	}
	if err == nil {
		err = checkStillThere(path, lock)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	f := &folder{path: path, lock: lock}
	if err := f.empty(); err != nil {
		return nil, errors.Join(fmt.Errorf("emptying %s: %w", path, err), lock.Close())
	}
	return f, nil
}

// checkStillThere fails when the folder was removed, by another that was just
// about to end, between being opened and being locked.
func checkStillThere(path string, lock *os.File) error {
	now, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	locked, err := lock.Stat()
	if err != nil {
		return err
	}
	if now == nil || !os.SameFile(now, locked) {
		return fmt.Errorf("%w was just ending in %s: try again", errBusy, path)
	}
	return nil
}

func (f *folder) empty() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(f.file(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// file is the path of a file in the folder.
func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// close removes the folder, unless it is to be kept, and then unlocks it.
func (f *folder) close(keep bool) error {
	var removed error
	if !keep {
		removed = os.RemoveAll(f.path)
	}
	return errors.Join(removed, f.lock.Close())
}
