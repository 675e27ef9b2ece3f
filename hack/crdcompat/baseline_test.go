package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// project is a folder in git that has one definition.
type project struct {
	t *testing.T
	baseline
}

func newProject(t *testing.T) project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatalf("the project needs git: %v", err)
	}
	root := t.TempDir()
	p := project{t: t, baseline: baseline{root: root, folder: filepath.Join(root, "hack", "crdcompat", "baseline")}}
	p.call("init", "--quiet")
	p.define(before)
	p.commit()
	return p
}

func (p project) call(args ...string) {
	p.t.Helper()
	identity := []string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgSign=false", "-c", "tag.gpgSign=false"}
	if _, err := p.git(p.t.Context(), append(identity, args...)...); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) commit() {
	p.t.Helper()
	p.call("add", "--all")
	p.call("commit", "--quiet", "--allow-empty", "--message=A change")
}

func (p project) write(text string, path ...string) {
	p.t.Helper()
	file := filepath.Join(append([]string{p.root}, path...)...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) define(text string) {
	p.t.Helper()
	p.write(text, filepath.FromSlash(crds), "things.yaml")
}

func (p project) run(set string) ([]string, error) {
	return run(p.t.Context(), p.baseline, set)
}

func (p project) mustSet(revision string) {
	p.t.Helper()
	if _, err := p.run(revision); err != nil {
		p.t.Fatal(err)
	}
	p.commit()
}

func (p project) expectError(want string) {
	p.t.Helper()
	if _, err := p.run(""); err == nil || !strings.Contains(err.Error(), want) {
		p.t.Errorf("got error %v, want one that says %q", err, want)
	}
}

func (p project) expectBreaks(want int) {
	p.t.Helper()
	if got, err := p.run(""); err != nil || len(got) != want {
		p.t.Errorf("got breaks %q and error %v, want %d breaks", got, err, want)
	}
}

func TestTheDefinitionsAreComparedWithTheBaseline(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.mustSet("HEAD")
	p.expectBreaks(0)
	p.define(strings.Replace(before, "maximum: 100", "maximum: 10", 1))
	p.expectBreaks(1)
}

func TestTheBaselineIsNotOfAnotherRevisionThanItSays(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.mustSet("HEAD")
	p.write(strings.Replace(before, "maximum: 100", "maximum: 10", 1), "hack", "crdcompat", "baseline", "things.yaml")
	p.expectError("things.yaml is not that of")
}

func TestAReleaseMovesTheBaseline(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.mustSet("HEAD")
	p.call("tag", "v0.1.0")
	p.call("tag", "v0.2.0-rc.1")
	p.expectBreaks(0) // the commit that is released is compared with the release before
	p.commit()
	p.expectError("v0.1.0 was released since")
	p.mustSet("v0.1.0")
	p.expectBreaks(0)
}

func TestWithoutHistoryTheCopiesAreTaken(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.mustSet("HEAD")
	t.Run("in a shallow clone", func(t *testing.T) {
		clone := t.TempDir()
		p.call("clone", "--quiet", "--depth=1", "file://"+p.root, clone)
		shallow := project{t: t, baseline: baseline{root: clone, folder: filepath.Join(clone, "hack", "crdcompat", "baseline")}}
		shallow.expectBreaks(0)
	})
	t.Run("without git", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(p.root, ".git")); err != nil {
			t.Fatal(err)
		}
		p.expectBreaks(0)
	})
}

func TestARevisionWithoutDefinitionsIsNoBaseline(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	if _, err := p.run("no-such-revision"); err == nil || !strings.Contains(err.Error(), "no-such-revision") {
		t.Errorf("got error %v, want one that names the revision", err)
	}
	p.expectError("reading the baseline's revision")
}
