package charts

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"avalonhosting.example/bucketoperator/localcluster"
)

// chart is the folder of the chart, seen from the tests' own.
const chart = "bucketoperator"

// pinned finds a program that a module under tools pins. Go builds it the first
// time.
func pinned(module, program string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		root, err := localcluster.ModuleRoot()
		if err != nil {
			return "", err
		}
		find := exec.Command("go", "tool", "-modfile="+filepath.Join(root, filepath.FromSlash(module)), "-n", program)
		find.Dir = root
		find.Stderr = os.Stderr
		path, err := find.Output()
		return strings.TrimSpace(string(path)), err
	})
}

var (
	helmProgram      = pinned("tools/helm/go.mod", "helm")
	kustomizeProgram = pinned("tools/go.mod", "kustomize")
)

// helm calls helm, without the user's own settings, and returns what it prints
// and what it complains of.
func helm(t *testing.T, args ...string) (output, complaints string, err error) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatalf("building helm: %v", err)
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	home := t.TempDir()
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	err = command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), err
}

// mustHelm is helm for calls that must work.
func mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	output, complaints, err := helm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, output, complaints)
	}
	return output
}

// render renders the chart as release bucketoperator in bucketoperator-system.
func render(t *testing.T, args ...string) objects {
	t.Helper()
	return parse(t, mustHelm(t, append([]string{"template", "bucketoperator", chart, "--namespace=bucketoperator-system"}, args...)...))
}

// kustomize builds a folder of config/.
func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	program, err := kustomizeProgram()
	if err != nil {
		t.Fatalf("building kustomize: %v", err)
	}
	output, err := exec.CommandContext(t.Context(), program, "build", filepath.Join("..", "config", folder)).Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v", folder, err)
	}
	return parse(t, string(output))
}

// valuesFiles are those that the chart is checked with, by name.
func valuesFiles(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chart, "ci", "*-values.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding values files: %v, %v", paths, err)
	}
	files := map[string]string{}
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = path
	}
	return files
}
