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
	cmd := exec.CommandContext(ctx, cluster.Assets().Kubectl, args...)
	cmd.Env = cluster.Environ()
	cmd.Stdin = input
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}
