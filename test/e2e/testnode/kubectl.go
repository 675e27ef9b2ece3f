package testnode

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// Kubectl runs kubectl and returns its standard output, less blanks at both ends.
// The test fails when kubectl does.
func Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	output, err := kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// Exec runs a command in a container of a pod, by default the first, and returns
// its standard output, less blanks at both ends. The error holds what it said on
// standard error.
func Exec(ctx context.Context, namespace, pod, container string, command ...string) (string, error) {
	args := []string{"--namespace=" + namespace, "exec", pod}
	if container != "" {
		args = append(args, "--container="+container)
	}
	return kubectl(ctx, append(append(args, "--"), command...)...)
}

func kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
