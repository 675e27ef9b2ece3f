package localcluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// programs are the names that the multi-call binary runs under.
var programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}

const multiCallBinary = "kubernetes"

// lockPoll is how often a process that waits for another's build looks whether
// it is done.
const lockPoll = 200 * time.Millisecond

// recipe is all that decides what a build yields.
type recipe struct {
	dir     string   // folder of the nested module
	sources [][]byte // its files
	flags   []string // for go build
	goVer   string
}

// buildOnce returns the programs in the cache folder, and builds them first if
// nobody has yet. A file lock keeps other processes, such as the tests of
// another package, from building the same at the same time.
func buildOnce(ctx context.Context, progress io.Writer) (Assets, error) {
	r, err := readRecipe(ctx)
	if err != nil {
		return Assets{}, fmt.Errorf("preparing the build of the Kubernetes programs: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Assets{}, fmt.Errorf("finding the cache folder for the Kubernetes programs: %w", err)
	}
	target := filepath.Join(cache, "bucketoperator", "kubernetes-"+r.key())
	if assets, err := assetsIn(target); err == nil {
		return assets, nil
	}

	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return Assets{}, fmt.Errorf("making the cache folder for the Kubernetes programs: %w", err)
	}
	unlock, err := lockBuild(ctx, target+".lock", progress)
	if err != nil {
		return Assets{}, err
	}
	defer unlock()
	if assets, err := assetsIn(target); err == nil {
		return assets, nil // another process built it while we waited
	}
	if err := r.buildInto(ctx, target, progress); err != nil {
		return Assets{}, fmt.Errorf("building the Kubernetes programs: %w", err)
	}
	return assetsIn(target)
}

func lockBuild(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintln(progress, "localcluster: waiting for another process that builds the Kubernetes programs")
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the build of the Kubernetes programs: %w", err)
	}
	// The lock file stays: removing it would let two processes lock two files
	// of the same name. Closing it cannot lose anything.
	return func() { _ = lock.Close() }, nil
}

func readRecipe(ctx context.Context) (recipe, error) {
	root, err := ModuleRoot()
	if err != nil {
		return recipe{}, fmt.Errorf("%w (or set %s to a folder with the programs)", err, AssetsEnv)
	}
	r := recipe{dir: filepath.Join(root, "localcluster", "kubernetes")}
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			return recipe{}, err
		}
		r.sources = append(r.sources, text)
	}
	version, err := kubernetesVersion(r.sources[0])
	if err != nil {
		return recipe{}, fmt.Errorf("reading %s: %w", filepath.Join(r.dir, "go.mod"), err)
	}
	r.flags = []string{"-trimpath", "-ldflags", linkFlags(version)}

	goVer, err := r.goCommand(ctx, "env", "GOVERSION").Output()
	if err != nil {
		return recipe{}, fmt.Errorf("asking the go command for its version: %w", err)
	}
	r.goVer = strings.TrimSpace(string(goVer))
	return r, nil
}

// kubernetesVersion is the version of k8s.io/kubernetes that a go.mod requires.
func kubernetesVersion(goMod []byte) (string, error) {
	file, err := modfile.ParseLax("go.mod", goMod, nil)
	if err != nil {
		return "", err
	}
	for _, require := range file.Require {
		if require.Mod.Path == "k8s.io/kubernetes" {
			return require.Mod.Version, nil
		}
	}
	return "", errors.New("it does not require k8s.io/kubernetes")
}

// linkFlags stamp the version into the binary: clients parse what the API
// server says of itself, and it knows nothing unless told by the linker.
func linkFlags(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
		pkg, version, major, minor)
}

func (r recipe) key() string {
	hash := sha256.New()
	for _, source := range r.sources {
		fmt.Fprintf(hash, "%d\n", len(source))
		hash.Write(source)
	}
	fmt.Fprintf(hash, "%q %s %s/%s", r.flags, r.goVer, runtime.GOOS, runtime.GOARCH)
	return hex.EncodeToString(hash.Sum(nil))[:12]
}

// goCommand is the go command in the nested module, for this machine and
// whatever flags the caller's own build was given.
func (r recipe) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	// Unlike a kill, an interrupt lets the go command clear up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopGrace
	return cmd
}

// buildInto makes target appear at once and complete, or not at all. No two
// calls for one target may run at the same time.
func (r recipe) buildInto(ctx context.Context, target string, progress io.Writer) error {
	temp := target + ".partial"
	// A build that was killed may have left it.
	if err := os.RemoveAll(temp); err != nil {
		return err
	}
	if err := os.Mkdir(temp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := r.compile(ctx, filepath.Join(temp, multiCallBinary), progress); err != nil {
		return err
	}
	for _, name := range programs {
		if err := os.Symlink(multiCallBinary, filepath.Join(temp, name)); err != nil {
			return err
		}
	}
	// What is there is incomplete, or the build would not have been needed.
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	return os.Rename(temp, target)
}

func (r recipe) compile(ctx context.Context, output string, progress io.Writer) error {
	deps, err := r.goCommand(ctx, "list", "-deps", ".").Output()
	if err != nil {
		return fmt.Errorf("listing the packages to build: %w", withStderr(err))
	}
	report := startBuildReport(progress, bytes.Count(deps, []byte("\n")))
	defer report.stop()

	args := append([]string{"build", "-v", "-o", output}, r.flags...)
	cmd := r.goCommand(ctx, append(args, ".")...)
	cmd.Stderr = report
	// Tied, so that the compilers do not work on for a process that was killed.
	err = startTied(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", r.dir, err, report.lastLines())
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
