// Package gobuild builds programs from nested modules with the Go toolchain,
// once: the result is kept in the user's cache folder, under a hash of all that
// it depends on.
package gobuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"avalonhosting.example/bucketoperator/localcluster/internal/process"
)

// Recipe is what to build and how.
type Recipe struct {
	// Name of what is built: for messages, and in the name of the cache folder.
	Name string

	// Dir is the folder of the nested module.
	Dir string

	// Packages of the module's main programs, as `go build` takes them.
	Packages []string

	// LinkFlags for the linker, beside those that leave out debug information.
	LinkFlags string

	// Programs are the files that the packages yield.
	Programs []string

	// Links are more names for the first program, which tells by its name what to
	// be.
	Links []string

	// Takes tells how long the first build takes, for the message that begins it.
	Takes string
}

// outputs are the names in the folder of a complete build.
func (r Recipe) outputs() []string {
	return append(slices.Clip(r.Programs), r.Links...)
}

func (r Recipe) flags() []string {
	return []string{"-trimpath", "-ldflags", strings.TrimSpace("-s -w " + r.LinkFlags)}
}

// key is a hash of all that the result depends on.
func (r Recipe) key(ctx context.Context) (string, error) {
	version, err := r.goCommand(ctx, "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for its version: %w", withStderr(err))
	}
	hash := sha256.New()
	err = filepath.WalkDir(r.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isSource(entry.Name()) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.Dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%q %d\n", filepath.ToSlash(name), len(text))
		hash.Write(text)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the module in %s: %w", r.Dir, err)
	}
	fmt.Fprintf(hash, "%q %q %q %s %s/%s", r.Packages, r.flags(), r.outputs(), bytes.TrimSpace(version), runtime.GOOS, runtime.GOARCH)
	return hex.EncodeToString(hash.Sum(nil))[:12], nil
}

// isSource tells whether a file of that name decides what is built.
func isSource(name string) bool {
	return name == "go.mod" || name == "go.sum" ||
		strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// goCommand is the go command in the nested module, for this machine and
// whatever flags the caller's own build was given.
func (r Recipe) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// Unlike a kill, an interrupt lets the go command clear up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = process.StopGrace
	return cmd
}

// buildInto makes target appear at once and complete, or not at all. No two
// calls for one target may run at the same time.
func (r Recipe) buildInto(ctx context.Context, target string, progress io.Writer) error {
	temp := target + ".partial"
	// A build that was killed may have left it.
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := r.compile(ctx, temp, progress); err != nil {
		return err
	}
	for _, name := range r.Links {
		if err := os.Symlink(r.Programs[0], filepath.Join(temp, name)); err != nil {
			return err
		}
	}
	if err := r.complete(temp); err != nil {
		return err
	}
	// What is there is incomplete, or the build would not have been needed.
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

// complete tells by an error which program is not in dir.
func (r Recipe) complete(dir string) error {
	for _, name := range r.outputs() {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (r Recipe) compile(ctx context.Context, dir string, progress io.Writer) error {
	deps, err := r.goCommand(ctx, append([]string{"list", "-deps"}, r.Packages...)...).Output()
	if err != nil {
		return fmt.Errorf("listing the packages to build: %w", withStderr(err))
	}
	report := startReport(progress, r.Name, r.Takes, bytes.Count(deps, []byte("\n")))
	defer report.stop()

	args := append([]string{"build", "-v", "-o", dir + string(filepath.Separator)}, r.flags()...)
	cmd := r.goCommand(ctx, append(args, r.Packages...)...)
	cmd.Stderr = report
	// Tied, so that the compilers do not work on for a process that was killed.
	err = process.StartTied(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", r.Dir, err, report.lastLines())
	}
	return nil
}

// withStderr adds what a command wrote before it failed.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
