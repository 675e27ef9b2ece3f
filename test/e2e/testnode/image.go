package testnode

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"avalonhosting.example/bucketoperator/localcluster/image"
)

// registry is in the names of images made by tests. Nobody serves it.
const registry = "testnode.example/"

// LoadImage gives the project's own node the images of an archive, as package
// image writes them. Pods that use them have the pull policy Never, or a tag other
// than latest. It skips the test on another cluster: there is no registry to have
// that pull from.
func LoadImage(t testing.TB, archive string) {
	t.Helper()
	NeedsOwnNode(t, "loading an image")
	cmd := exec.CommandContext(t.Context(), "ctr", "images", "import", "--digests=false", archive)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("loading the image %s: %v: %s", archive, err, bytes.TrimSpace(output))
	}
}

// MakeImage makes an image of the tree, loads it as LoadImage does, and returns
// the name that pods use it by.
func MakeImage(t testing.TB, name string, tree *image.Tree, config image.Config) string {
	t.Helper()
	NeedsOwnNode(t, "loading an image")
	reference := registry + name + ":test"
	built, err := image.Build(tree, config)
	if err != nil {
		t.Fatalf("making the image %s: %v", name, err)
	}
	archive := filepath.Join(t.TempDir(), name+".tar")
	if err := image.WriteFile(archive, reference, built); err != nil {
		t.Fatal(err)
	}
	LoadImage(t, archive)
	return reference
}

// DebianImage makes an image of programs that are installed on this machine, with
// their libraries, and loads it. The first of them is what containers run.
func DebianImage(t testing.TB, name string, programs ...string) string {
	t.Helper()
	NeedsOwnNode(t, "loading an image")
	tree := image.NewTree()
	if err := tree.AddPrograms(t.Context(), programs...); err != nil {
		t.Fatal(err)
	}
	first, err := exec.LookPath(programs[0])
	if err != nil {
		t.Fatal(err)
	}
	return MakeImage(t, name, tree, image.Config{Entrypoint: []string{first}})
}

// GoImage makes an image of a program of this module, by its package path, and
// loads it. Whatever modules the program needs must have been downloaded before.
func GoImage(t testing.TB, name, pkg string) string {
	t.Helper()
	NeedsOwnNode(t, "loading an image")
	program := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v: %s", pkg, err, bytes.TrimSpace(output))
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	entrypoint := path.Join("/", name)
	tree := image.NewTree()
	if err := tree.AddFile(entrypoint, 0o755, content); err != nil {
		t.Fatal(err)
	}
	return MakeImage(t, name, tree, image.Config{Entrypoint: []string{entrypoint}})
}
