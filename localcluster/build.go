package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"avalonhosting.example/bucketoperator/localcluster/internal/gobuild"
)

// buildOnce returns the programs in the cache folder, and builds them first if
// nobody has yet.
func buildOnce(ctx context.Context, progress io.Writer) (Assets, error) {
	recipe, err := kubernetesRecipe()
	if err != nil {
		return Assets{}, fmt.Errorf("preparing the build of the Kubernetes programs: %w", err)
	}
	dir, err := recipe.Once(ctx, progress)
	if err != nil {
		return Assets{}, err
	}
	return assetsIn(dir)
}

func kubernetesRecipe() (gobuild.Recipe, error) {
	root, err := ModuleRoot()
	if err != nil {
		return gobuild.Recipe{}, fmt.Errorf("%w (or set %s to a folder with the programs)", err, AssetsEnv)
	}
	dir := filepath.Join(root, "localcluster", "kubernetes")
	version, err := kubernetesVersion(filepath.Join(dir, "go.mod"))
	if err != nil {
		return gobuild.Recipe{}, err
	}
	links := []string{Etcd, APIServer, ControllerManager, Scheduler, "kubectl"}
	if runtime.GOOS == "linux" {
		links = append(links, "kubelet", "kube-proxy")
	}
	return gobuild.Recipe{
		Name:      "kubernetes",
		Dir:       dir,
		Packages:  []string{"."},
		LinkFlags: versionFlags(version),
		Programs:  []string{"kubernetes"},
		Links:     links,
		Takes:     "about ten minutes on two cores",
	}, nil
}

// kubernetesVersion is the version of k8s.io/kubernetes that a go.mod requires.
func kubernetesVersion(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	file, err := modfile.ParseLax(path, text, nil)
	if err != nil {
		return "", err
	}
	for _, require := range file.Require {
		if require.Mod.Path == "k8s.io/kubernetes" {
			return require.Mod.Version, nil
		}
	}
	return "", errors.New(path + " does not require k8s.io/kubernetes")
}

// versionFlags stamp the version into the binary: clients parse what the API
// server says of itself, and it knows nothing unless told by the linker.
func versionFlags(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("-X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
		pkg, version, major, minor)
}
