package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// revisionFile names the revision that the baseline is from: a release's tag or,
// before the first, a commit.
const revisionFile = "REVISION"

// baseline are the definitions of the last release.
type baseline struct {
	root   string // of the project
	folder string
}

// verify fails if git knows better. Without git, or without the revision in a
// shallow clone, there is nothing to compare with.
func (b baseline) verify(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(b.folder, revisionFile))
	if err != nil {
		return fmt.Errorf("reading the baseline's revision: %w", err)
	}
	revision := strings.TrimSpace(string(text))
	if latest := b.latestRelease(ctx); latest != "" && semver.Compare(latest, revision) > 0 {
		return fmt.Errorf("the baseline is that of %s, and %s was released since: call go run ./hack/crdcompat -set %s", revision, latest, latest)
	}
	if _, err := b.git(ctx, "cat-file", "-e", revision+"^{commit}"); err != nil {
		return nil //nolint:nilerr // git does not know the revision
	}
	want, err := b.filesOf(ctx, revision)
	if err != nil {
		return err
	}
	got, err := b.copies()
	if err != nil {
		return err
	}
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			return fmt.Errorf("the baseline's %s is not that of %s: call go run ./hack/crdcompat -set %s", name, revision, revision)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("the baseline has %d definitions, and %s %d: call go run ./hack/crdcompat -set %s", len(got), revision, len(want), revision)
	}
	return nil
}

// set copies the definitions of a revision.
func (b baseline) set(ctx context.Context, revision string) error {
	files, err := b.filesOf(ctx, revision)
	if err != nil {
		return err
	}
	if !semver.IsValid(revision) {
		// A branch moves; a commit does not.
		commit, err := b.git(ctx, "rev-parse", "--verify", revision+"^{commit}")
		if err != nil {
			return err
		}
		revision = strings.TrimSpace(string(commit))
	}
	if err := os.RemoveAll(b.folder); err != nil {
		return fmt.Errorf("removing the former baseline: %w", err)
	}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return fmt.Errorf("making the baseline's folder: %w", err)
	}
	files[revisionFile] = []byte(revision + "\n")
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(b.folder, name), content, 0o644); err != nil {
			return fmt.Errorf("writing the baseline: %w", err)
		}
	}
	return nil
}

// copies are the definitions in the baseline's folder by file name.
func (b baseline) copies() (map[string][]byte, error) {
	names, err := fs.Glob(os.DirFS(b.folder), "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the baseline: %w", err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = os.ReadFile(filepath.Join(b.folder, name)); err != nil {
			return nil, fmt.Errorf("reading the baseline: %w", err)
		}
	}
	return files, nil
}

// filesOf are the definitions of a revision by file name.
func (b baseline) filesOf(ctx context.Context, revision string) (map[string][]byte, error) {
	list, err := b.git(ctx, "ls-tree", "--name-only", revision, crds+"/")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for file := range strings.Lines(string(list)) {
		file = strings.TrimSpace(file)
		if files[path.Base(file)], err = b.git(ctx, "show", revision+":"+file); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("revision %s has no definitions in %s", revision, crds)
	}
	return files, nil
}

// latestRelease is the highest version among the tags of the commits before this
// one, or nothing.
func (b baseline) latestRelease(ctx context.Context) string {
	tags, err := b.git(ctx, "tag", "--merged", "HEAD", "--no-contains", "HEAD", "--list", "v*")
	if err != nil {
		return "" // not in git
	}
	versions := slices.DeleteFunc(strings.Fields(string(tags)), func(tag string) bool {
		return !semver.IsValid(tag) || semver.Prerelease(tag) != ""
	})
	if len(versions) == 0 {
		return ""
	}
	return slices.MaxFunc(versions, semver.Compare)
}

func (b baseline) git(ctx context.Context, args ...string) ([]byte, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", b.root}, args...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("calling git %s: %w: %s", args[0], err, bytes.TrimSpace(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("calling git: %w", err)
	}
	return output, nil
}
