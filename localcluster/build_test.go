package localcluster

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVersionComesFromGoMod(t *testing.T) {
	t.Parallel()
	version, err := kubernetesVersion([]byte("module x\nrequire (\n\tk8s.io/api v0.40.1\n\tk8s.io/kubernetes v1.40.1\n)\n"))
	if err != nil || version != "v1.40.1" {
		t.Fatalf("version %q (%v), want v1.40.1", version, err)
	}
	const want = "-s -w -X k8s.io/component-base/version.gitVersion=v1.40.1 -X k8s.io/component-base/version.gitMajor=1 " +
		"-X k8s.io/component-base/version.gitMinor=40 -X k8s.io/component-base/version.gitTreeState=clean"
	if got := linkFlags(version); got != want {
		t.Errorf("link flags %q, want %q", got, want)
	}
	if _, err := kubernetesVersion([]byte("module x\n")); err == nil {
		t.Error("a go.mod without k8s.io/kubernetes is no error")
	}
}

func TestKeyChangesWithAllThatTheBuildDependsOn(t *testing.T) {
	t.Parallel()
	base := func() recipe {
		return recipe{sources: [][]byte{[]byte("mod"), []byte("main")}, flags: []string{"-trimpath"}, goVer: "go1.26.0"}
	}
	if first, second := base().key(), base().key(); first != second {
		t.Error("equal recipes have different keys")
	}
	for what, change := range map[string]func(*recipe){
		"source":                 func(r *recipe) { r.sources[1] = []byte("other") },
		"border between sources": func(r *recipe) { r.sources = [][]byte{[]byte("modm"), []byte("ain")} },
		"flags":                  func(r *recipe) { r.flags = nil },
		"go version":             func(r *recipe) { r.goVer = "go1.26.1" },
	} {
		changed := base()
		change(&changed)
		if changed.key() == base().key() {
			t.Errorf("the key does not depend on the %s", what)
		}
	}
}

func TestBuildReportCountsPackagesAndKeepsErrors(t *testing.T) {
	t.Parallel()
	report := startBuildReport(io.Discard, 3)
	defer report.stop()
	for _, part := range []string{"errors\ninternal/", "abi\n# broken\nmain.go:1:1: syntax ", "error"} {
		if _, err := io.WriteString(report, part); err != nil {
			t.Fatal(err)
		}
	}
	if report.compiled != 2 {
		t.Errorf("%d packages counted, want 2", report.compiled)
	}
	if got, want := report.lastLines(), "# broken\nmain.go:1:1: syntax error"; got != want {
		t.Errorf("last lines %q, want %q", got, want)
	}
}

// smallModule is a nested module that builds in a moment.
func smallModule(t *testing.T, source string) recipe {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module small.example\n", "main.go": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return recipe{dir: dir}
}

func TestBuildGivesAllPrograms(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(target, 0o755); err != nil { // as if someone had emptied it
		t.Fatal(err)
	}
	if err := smallModule(t, "package main\n\nfunc main() {}\n").buildInto(t.Context(), target, io.Discard); err != nil {
		t.Fatal(err)
	}
	assets, err := assetsIn(target)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains([]string{assets.ControllerManager, assets.Scheduler, assets.Kubectl}, "") {
		t.Errorf("assets %+v lack an optional program", assets)
	}
}

func TestFailedBuildShowsTheCompilerAndLeavesNothing(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	err := smallModule(t, "package main\n\nfunc main() { undefinedThing() }\n").buildInto(t.Context(), filepath.Join(parent, "target"), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "undefinedThing") {
		t.Errorf("error %v, want the compiler's complaint", err)
	}
	if left, readErr := os.ReadDir(parent); readErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, readErr)
	}
}
