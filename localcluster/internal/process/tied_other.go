//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// StartTied starts a command in a process group of its own, so that a
// terminal's Ctrl-C reaches only this process, which then stops its children in
// order. Other than Linux, these systems cannot tie a child's life to its
// parent's: a parent killed by SIGKILL leaves its children behind.
func StartTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
