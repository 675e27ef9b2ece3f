package localcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func makePrograms(t *testing.T, mode os.FileMode, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAssetsFolderIsUsedAsItIs(t *testing.T) {
	dir := makePrograms(t, 0o755, "etcd", "kube-apiserver", "kubectl")
	t.Setenv(AssetsEnv, dir)
	got, err := Binaries(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Assets{
		Dir:       dir,
		Etcd:      filepath.Join(dir, "etcd"),
		APIServer: filepath.Join(dir, "kube-apiserver"),
		Kubectl:   filepath.Join(dir, "kubectl"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("assets (-want +got):\n%s", diff)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		dir  string
		want []string
	}{
		"one absent":     {makePrograms(t, 0o755, "etcd", "kubectl"), []string{"kube-apiserver"}},
		"all absent":     {t.TempDir(), []string{"etcd", "kube-apiserver"}},
		"not executable": {makePrograms(t, 0o644, "etcd", "kube-apiserver"), []string{"etcd", "kube-apiserver"}},
		"no folder":      {filepath.Join(t.TempDir(), "absent"), []string{"etcd", "kube-apiserver"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(AssetsEnv, test.dir)
			_, err := Start(t.Context(), Options{})
			if err == nil {
				t.Fatal("the cluster started")
			}
			for _, want := range append(test.want, AssetsEnv, test.dir) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %s", err, want)
				}
			}
		})
	}
}

func TestClusterWithoutOptionalProgramsSaysSo(t *testing.T) {
	built, err := Binaries(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.Symlink(filepath.Join(built.Dir, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(AssetsEnv, dir)
	var said strings.Builder
	cluster, err := Start(t.Context(), Options{Scheduler: true, Progress: &said})
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{ControllerManager, Scheduler} {
		if strings.Count(said.String(), "no "+name) != 1 {
			t.Errorf("said %q, want one line about %s", said.String(), name)
		}
	}
}
