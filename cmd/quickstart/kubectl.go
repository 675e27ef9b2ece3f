package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// kubectl runs the kubectl that was built with the cluster, as its administrator.
type kubectl struct {
	program    string // what runs
	link       string // where people find it
	root       string // where it runs
	kubeconfig string
	cache      string
}

// linkKubectl makes kubectl easy to find: bin/kubectl in the checkout. What is
// there and is no link is somebody else's.
func (k kubectl) linkKubectl() error {
	if err := k.unlinkKubectl(); err != nil {
		return err
	}
	if err := os.Symlink(k.program, k.link); err != nil {
		return fmt.Errorf("linking kubectl: %w", err)
	}
	return nil
}

func (k kubectl) unlinkKubectl() error {
	info, err := os.Lstat(k.link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSymlink:
		return fmt.Errorf("%s is in the way of a link to kubectl: move it", k.link)
	}
	return os.Remove(k.link)
}

// run returns what kubectl prints or, when that is nothing, what it remarks.
func (k kubectl) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.program, args...)
	cmd.Dir = k.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "KUBECACHEDIR="+k.cache)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	if stdout.Len() == 0 {
		return stderr.String(), nil
	}
	return stdout.String(), nil
}
