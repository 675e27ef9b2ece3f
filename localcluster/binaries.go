package localcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// AssetsEnv names the environment variable that, when set, holds a folder with
// ready-made Kubernetes programs, as envtest lays it out. Nothing is built then.
const AssetsEnv = "KUBEBUILDER_ASSETS"

// Assets are the paths of the programs of a control plane. An optional program
// that is not there has an empty path.
type Assets struct {
	// Dir is the folder that holds the programs: put it into PATH for kubectl.
	Dir string

	Etcd      string
	APIServer string

	// The programs below are optional: of them, an envtest folder has kubectl
	// alone, and the last two are for Linux.
	ControllerManager string
	Scheduler         string
	Kubectl           string
	Kubelet           string
	KubeProxy         string
}

// Binaries returns the programs of a control plane: those in the folder that
// AssetsEnv names or, without it, those built from the nested module
// localcluster/kubernetes. The first build takes minutes; its result is cached
// for all later calls by any process of this user. Progress, if not nil, is
// told how a build gets on.
func Binaries(ctx context.Context, progress io.Writer) (Assets, error) {
	if progress == nil {
		progress = io.Discard
	}
	if dir := os.Getenv(AssetsEnv); dir != "" {
		assets, err := assetsIn(dir)
		if err != nil {
			return Assets{}, fmt.Errorf("using the programs that %s names: %w", AssetsEnv, err)
		}
		return assets, nil
	}
	return buildOnce(ctx, progress)
}

// assetsIn finds the programs in dir, and fails when a required one is missing.
func assetsIn(dir string) (Assets, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Assets{}, err
	}
	assets := Assets{Dir: dir}
	var missing []string
	for _, program := range []struct {
		name     string
		path     *string
		required bool
	}{
		{"etcd", &assets.Etcd, true},
		{"kube-apiserver", &assets.APIServer, true},
		{"kube-controller-manager", &assets.ControllerManager, false},
		{"kube-scheduler", &assets.Scheduler, false},
		{"kubectl", &assets.Kubectl, false},
		{"kubelet", &assets.Kubelet, false},
		{"kube-proxy", &assets.KubeProxy, false},
	} {
		path, err := exec.LookPath(filepath.Join(dir, program.name))
		switch {
		case err == nil:
			*program.path = path
		case program.required:
			missing = append(missing, program.name)
		}
	}
	if len(missing) > 0 {
		return Assets{}, fmt.Errorf("no executable %s in %s", strings.Join(missing, ", no executable "), dir)
	}
	return assets, nil
}
