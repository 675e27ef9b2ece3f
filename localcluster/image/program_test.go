package image

import (
	"archive/tar"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibrariesAreReadFromWhatLddPrints(t *testing.T) {
	t.Parallel()
	const output = `	linux-vdso.so.1 (0x00007ffd3a5f2000)
	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1c5a2c1000)
	libpthread.so.0 => not needed here
	/lib64/ld-linux-x86-64.so.2 (0x00007f1c5a6e8000)
`
	got, err := parseLdd(output)
	want := []string{"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("libraries (-want +got):\n%s, error: %v", diff, err)
	}
}

func TestALibraryThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	_, err := parseLdd("\tlibwanted.so.1 => not found\n")
	if err == nil || !strings.Contains(err.Error(), "libwanted.so.1") {
		t.Errorf("got error %v, want one that names the library", err)
	}
}

func TestAScriptIsNoProgram(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := NewTree().AddPrograms(t.Context(), script); err == nil || !strings.Contains(err.Error(), "interpreter") {
		t.Errorf("got error %v, want one that says what to do", err)
	}
	if err := NewTree().AddPrograms(t.Context(), "no-such-program"); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("got error %v, want one that names the program", err)
	}
}

func TestAStaticProgramIsAddedAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "static")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	tree := NewTree()
	if err := tree.AddPrograms(t.Context(), program); err != nil {
		t.Fatal(err)
	}
	for name, entry := range list(t, mustBuild(t, tree, anyEntrypoint)) {
		if entry.Type == tar.TypeReg && name != program[1:] {
			t.Errorf("the image holds %s, too", name)
		}
	}
}

func TestAFolderOfTheMachineIsAddedWithAllThatIsInIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"data/a": 0o640, "data/sub/b": 0o755} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"data/dangling": "nowhere", "link": "data"} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree := NewTree()
	if err := tree.AddFromMachine(filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	got := map[string]listed{}
	for name, entry := range list(t, mustBuild(t, tree, anyEntrypoint)) {
		if name, below := strings.CutPrefix("/"+name, folder+"/"); below && name != "" {
			got[name] = entry
		}
	}
	want := map[string]listed{
		"link":          {Type: tar.TypeSymlink, Mode: 0o777, Link: "data"},
		"data/":         {Type: tar.TypeDir, Mode: 0o755},
		"data/a":        {Type: tar.TypeReg, Mode: 0o640, Content: "x"},
		"data/sub/":     {Type: tar.TypeDir, Mode: 0o755},
		"data/sub/b":    {Type: tar.TypeReg, Mode: 0o755, Content: "x"},
		"data/dangling": {Type: tar.TypeSymlink, Mode: 0o777, Link: "nowhere"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is in the image (-want +got):\n%s", diff)
	}
}
