package gobuild

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const emptyMain = "package main\n\nfunc main() {}\n"

// smallModule is a nested module with one program, small, that builds in a
// moment, and a link to it.
func smallModule(t *testing.T, source string) Recipe {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "go.mod", "module example.org/small\n")
	writeFile(t, dir, "main.go", source)
	return Recipe{Name: "small", Dir: dir, Packages: []string{"."}, Programs: []string{"small"}, Links: []string{"alias"}}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keyOf(t *testing.T, r Recipe) string {
	t.Helper()
	key, err := r.key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestKeyChangesWithAllThatTheBuildDependsOn(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*Recipe){
		"source":              func(r *Recipe) { writeFile(t, r.Dir, "main.go", emptyMain+"\n// Changed.\n") },
		"go.mod":              func(r *Recipe) { writeFile(t, r.Dir, "go.mod", "module example.org/small\n\ngo 1.26\n") },
		"go.sum":              func(r *Recipe) { writeFile(t, r.Dir, "go.sum", "") },
		"package in a folder": func(r *Recipe) { writeFile(t, r.Dir, "sub/sub.go", "package sub\n") },
		"link flags":          func(r *Recipe) { r.LinkFlags = "-X main.version=1" },
		"packages":            func(r *Recipe) { r.Packages = []string{"./sub"} },
		"names":               func(r *Recipe) { r.Links = nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := smallModule(t, emptyMain)
			before := keyOf(t, r)
			if keyOf(t, r) != before {
				t.Fatal("equal recipes have different keys")
			}
			change(&r)
			if keyOf(t, r) == before {
				t.Errorf("the key does not depend on the %s", what)
			}
		})
	}
}

func TestKeyDoesNotDependOnWhatIsNotBuilt(t *testing.T) {
	t.Parallel()
	r := smallModule(t, emptyMain)
	before := keyOf(t, r)
	writeFile(t, r.Dir, "main_test.go", "package main\n")
	writeFile(t, r.Dir, "README.md", "Small.\n")
	if keyOf(t, r) != before {
		t.Error("a test and a README changed the key")
	}
}

func TestBuildGivesAllPrograms(t *testing.T) {
	t.Parallel()
	r := smallModule(t, emptyMain)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(target, 0o755); err != nil { // as if someone had emptied it
		t.Fatal(err)
	}
	if err := r.complete(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an emptied folder: %v, want that a program is missing", err)
	}
	if err := r.buildInto(t.Context(), target, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := r.complete(target); err != nil {
		t.Error(err)
	}
}

func TestFailedBuildShowsTheCompilerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	r := smallModule(t, "package main\n\nfunc main() { undefinedThing() }\n")
	err := r.buildInto(t.Context(), filepath.Join(parent, "target"), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("error %v, want the compiler's complaint", err)
	}
	if left, readErr := os.ReadDir(parent); readErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, readErr)
	}
}

func TestSecondCallBuildsNothing(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	r := smallModule(t, emptyMain)
	var said strings.Builder
	first, err := r.onceIn(t.Context(), cache, &said)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "building small") {
		t.Errorf("the first call said %q, want that it builds", said.String())
	}
	said.Reset()
	second, err := r.onceIn(t.Context(), cache, &said)
	if err != nil {
		t.Fatal(err)
	}
	if second != first || said.Len() > 0 {
		t.Errorf("the second call gave %s and said %q, want %s and nothing", second, said.String(), first)
	}
}
