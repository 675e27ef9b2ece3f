package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyAbandonedFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	inUse, err := makeTempDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	abandoned, err := makeTempDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := abandoned.lock.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	foreign := filepath.Join(parent, tempPrefix+"without-a-lock")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}

	RemoveAbandoned(parent)

	if _, err := os.Stat(abandoned.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the abandoned folder: %v, want that it is gone", err)
	}
	for _, path := range []string{inUse.Path, foreign} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a folder that is not abandoned: %v", err)
		}
	}
	if err := inUse.Close(); err != nil {
		t.Error(err)
	}
}
