package image

import (
	"archive/tar"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// The layout is right if the loader finds all it needs in it, and nowhere else.
func TestADebianProgramRunsWithNothingButTheImage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ldd"); err != nil {
		t.Skipf("programs of a machine are added on Linux with glibc only: %v", err)
	}
	tree := NewTree()
	if err := tree.AddPrograms(t.Context(), "sh", "cat"); err != nil {
		t.Fatal(err)
	}
	if err := tree.AddFile("/greeting", 0o644, []byte("it runs")); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack(t, tree, root)

	program := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exec cat /greeting")
	program.SysProcAttr = rootedAt(root)
	program.Dir = "/"
	program.Env = []string{"PATH=/usr/bin:/bin"}
	output, err := program.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("this user may not change its root folder: %v", err)
	}
	if err != nil || string(output) != "it runs" {
		t.Errorf("sh in the image printed %q, %v", output, err)
	}
}

// unpack writes the tree into a folder, as a container runtime would.
func unpack(t *testing.T, tree *Tree, root string) {
	t.Helper()
	headers, contents := headers(t, mustBuild(t, tree, anyEntrypoint))
	for i, h := range headers {
		name := filepath.Join(root, h.Name)
		var err error
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, fs.FileMode(h.Mode).Perm())
		case tar.TypeSymlink:
			err = os.Symlink(h.Linkname, name)
		default:
			err = os.WriteFile(name, contents[i], fs.FileMode(h.Mode).Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rootedAt gives a program another root folder, and the user the right to do so.
func rootedAt(folder string) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Chroot: folder}
	if os.Getuid() != 0 {
		attributes.Cloneflags = syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	return attributes
}
