package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFolderOfOneThatWasKilledIsEmptied(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quickstart")
	if err := os.MkdirAll(filepath.Join(path, "cluster", "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(path); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v (%v)", left, err)
	}
	if err := f.close(false); err != nil {
		t.Error(err)
	}
}

func TestFolderIsTakenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quickstart")
	first, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(path); !errors.Is(err, errBusy) {
		t.Errorf("second: %v, want %v", err, errBusy)
	}
	if err := first.close(false); err != nil {
		t.Error(err)
	}
	third, err := openFolder(path)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := third.close(true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a folder to be kept: %v", err)
	}
}

func TestFolderThatWasRemovedBeforeItWasLockedIsNotTaken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "quickstart")
	for _, replace := range []bool{false, true} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path, path+"-moved"); err != nil {
			t.Fatal(err)
		}
		if replace {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := checkStillThere(path, lock); !errors.Is(err, errBusy) {
			t.Errorf("replaced %t: %v, want %v", replace, err, errBusy)
		}
		if err := errors.Join(lock.Close(), os.RemoveAll(path+"-moved")); err != nil {
			t.Fatal(err)
		}
	}
}
