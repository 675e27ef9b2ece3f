//go:build linux

package node

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"avalonhosting.example/bucketoperator/localcluster"
)

// kubectl runs kubectl as an administrator.
func kubectl(ctx context.Context, cluster *localcluster.Cluster, input io.Reader, args ...string) error {
	_, err := kubectlOutput(ctx, cluster, input, args...)
	return err
}

// kubectlOutput does the same, and returns what kubectl said on both its outputs.
func kubectlOutput(ctx context.Context, cluster *localcluster.Cluster, input io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, cluster.Assets().Kubectl, args...)
	cmd.Env = cluster.Environ()
	cmd.Stdin = input
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return string(output), nil
}
