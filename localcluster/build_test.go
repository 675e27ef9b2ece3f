package localcluster

import (
	"os"
	"path/filepath"
	"testing"
)

func goMod(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVersionComesFromGoMod(t *testing.T) {
	t.Parallel()
	version, err := kubernetesVersion(goMod(t, "module x\nrequire (\n\tk8s.io/api v0.40.1\n\tk8s.io/kubernetes v1.40.1\n)\n"))
	if err != nil || version != "v1.40.1" {
		t.Fatalf("version %q (%v), want v1.40.1", version, err)
	}
	const want = "-X k8s.io/component-base/version.gitVersion=v1.40.1 -X k8s.io/component-base/version.gitMajor=1 " +
		"-X k8s.io/component-base/version.gitMinor=40 -X k8s.io/component-base/version.gitTreeState=clean"
	if got := versionFlags(version); got != want {
		t.Errorf("link flags %q, want %q", got, want)
	}
	if _, err := kubernetesVersion(goMod(t, "module x\n")); err == nil {
		t.Error("a go.mod without k8s.io/kubernetes is no error")
	}
}
