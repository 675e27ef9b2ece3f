//go:build linux

package node

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/internal/gobuild"
)

// Programs are the folders of the programs that a node runs.
type Programs struct {
	// Kubernetes holds the control plane, kubelet, kube-proxy and kubectl.
	Kubernetes string
	// Containerd holds containerd, its shim, ctr, and pause for images.
	Containerd string
	// CoreDNS holds coredns, for images.
	CoreDNS string
}

// Build returns the programs of a node. What nobody has built yet, it builds from
// the nested modules of localcluster, which takes minutes; the results are
// cached. Progress, if not nil, is told how a build gets on.
func Build(ctx context.Context, progress io.Writer) (Programs, error) {
	if progress == nil {
		progress = io.Discard
	}
	assets, err := localcluster.Binaries(ctx, progress)
	if err != nil {
		return Programs{}, err
	}
	for name, path := range map[string]string{
		localcluster.ControllerManager: assets.ControllerManager,
		localcluster.Scheduler:         assets.Scheduler,
		"kubectl":                      assets.Kubectl,
		"kubelet":                      assets.Kubelet,
		"kube-proxy":                   assets.KubeProxy,
	} {
		if path == "" {
			return Programs{}, fmt.Errorf("there is no %s in %s: unset %s to have it built", name, assets.Dir, localcluster.AssetsEnv)
		}
	}
	root, err := localcluster.ModuleRoot()
	if err != nil {
		return Programs{}, err
	}
	containerd, err := gobuild.Recipe{
		Name:     "containerd",
		Dir:      filepath.Join(root, "localcluster", "containerd"),
		Packages: []string{"tool", "./pause"}, // the tools of its go.mod
		Programs: []string{"containerd", "containerd-shim-runc-v2", "ctr", "pause"},
		Takes:    "about two minutes on two cores",
	}.Once(ctx, progress)
	if err != nil {
		return Programs{}, err
	}
	coreDNS, err := gobuild.Recipe{
		Name:     "coredns",
		Dir:      filepath.Join(root, "localcluster", "coredns"),
		Packages: []string{"."},
		Programs: []string{"coredns"},
		Takes:    "about three minutes on two cores",
	}.Once(ctx, progress)
	if err != nil {
		return Programs{}, err
	}
	return Programs{Kubernetes: assets.Dir, Containerd: containerd, CoreDNS: coreDNS}, nil
}
