//go:build linux

package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"avalonhosting.example/bucketoperator/localcluster/internal/process"
)

const (
	// containerdSocket is in the node's own /run.
	containerdSocket = "/run/containerd/containerd.sock"

	// containerdNamespace is what the kubelet has its images and containers in.
	containerdNamespace = "k8s.io"
)

// containerdConfig takes the node's folder, the folder of CNI configurations
// below it, and the names of what is fixed. What is not said is as containerd
// has it.
const containerdConfig = `version = 3
root = %[1]q
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.grpc.v1.stream", "io.containerd.internal.v1.tracing"]

[grpc]
address = %[2]q

[plugins.'io.containerd.internal.v1.opt']
path = %[3]q

[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %[4]q

[plugins.'io.containerd.cri.v1.runtime']
# Without CAP_SYS_RESOURCE, as on many machines that are containers themselves,
# nobody may ask for a lower score than they have.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%[5]q]
conf_dir = %[6]q
`

// startContainerd starts containerd and returns when it answers.
func startContainerd(ctx context.Context, s spec) (*process.Process, error) {
	config := fmt.Sprintf(containerdConfig, mounted.containerd(), containerdSocket, filepath.Join(mounted.containerd(), "opt"),
		pauseImage, pluginFolder, mounted.config())
	file := filepath.Join(mounted.config(), "containerd.toml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing containerd's configuration: %w", err)
	}
	if err := writePodNetwork(mounted.config()); err != nil {
		return nil, err
	}
	p, err := process.Start("containerd", filepath.Join(s.Containerd, "containerd"), []string{"--config=" + file}, mounted.log("containerd"))
	if err != nil {
		return nil, err
	}
	return p, p.WaitReady(ctx, func(ctx context.Context) error {
		return ctr(ctx, s.Containerd, "version")
	})
}

// importArgs load an archive for Kubernetes, with all that its index names.
func importArgs(archive string) []string {
	return []string{"--namespace=" + containerdNamespace, "images", "import", "--digests=false", archive}
}

// ctr runs containerd's client.
func ctr(ctx context.Context, programs string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "ctr"), append([]string{"--address=" + containerdSocket}, args...)...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w: %s", args[len(args)-1], err, bytes.TrimSpace(output))
	}
	return nil
}
