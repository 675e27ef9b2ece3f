//go:build linux

package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"avalonhosting.example/bucketoperator/localcluster"
)

// Environ is the environment of this process for a command that uses the node:
// KUBECONFIG, localcluster.TestKubeconfigEnv and localcluster.NodeEnv are set, ctr
// is told where containerd is, and kubectl and ctr are in PATH.
func (n *Node) Environ() []string {
	return append(os.Environ(),
		"KUBECONFIG="+n.up.Kubeconfig,
		localcluster.TestKubeconfigEnv+"="+n.up.Kubeconfig,
		localcluster.NodeEnv+"="+string(mounted),
		"CONTAINERD_ADDRESS="+containerdSocket,
		"CONTAINERD_NAMESPACE="+containerdNamespace,
		"PATH="+searchPath(n.programs.Kubernetes, n.programs.Containerd),
	)
}

// StartCommand starts the command as its method Start does, but in the node's
// namespaces: it reaches the API server, pods and services, sees the processes of
// the node, and nothing of the network outside. Without an Env it gets that of
// Environ. It is killed when the node stops.
func (n *Node) StartCommand(cmd *exec.Cmd) error {
	if cmd.Env == nil {
		cmd.Env = n.Environ()
	}
	return n.entrance.start(cmd)
}

// LoadImage gives the node the images of an archive.
func (n *Node) LoadImage(ctx context.Context, archive string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(n.programs.Containerd, "ctr"), importArgs(archive)...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := n.StartCommand(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("loading the image %s: %w: %s", archive, err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// PID is the id, in this process's namespace, of process 1 of the node's: what
// nsenter's --target takes.
func (n *Node) PID() int { return n.init.Process.Pid }

// Kubeconfig is the path, inside, of an administrator's kubeconfig file.
func (n *Node) Kubeconfig() string { return n.up.Kubeconfig }

// Dir is the node's folder on this machine; logs are in the folders logs and
// control-plane/logs in it.
func (n *Node) Dir() string { return n.dir.Path }

// EnterCommand is a shell command that opens a shell inside the node.
func (n *Node) EnterCommand() string {
	return fmt.Sprintf("nsenter --target=%d --mount --net --ipc --uts --pid env KUBECONFIG=%q CONTAINERD_ADDRESS=%s CONTAINERD_NAMESPACE=%s PATH=%q:%q:\"$PATH\" bash",
		n.PID(), n.Kubeconfig(), containerdSocket, containerdNamespace, n.programs.Kubernetes, n.programs.Containerd)
}

// LookPath finds a program in the PATH of Environ.
func (n *Node) LookPath(program string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, folder := range filepath.SplitList(searchPath(n.programs.Kubernetes, n.programs.Containerd)) {
		if path, err := exec.LookPath(filepath.Join(folder, program)); err == nil && folder != "" {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", program, exec.ErrNotFound)
}
