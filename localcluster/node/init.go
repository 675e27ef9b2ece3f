//go:build linux

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// runInit is process 1 of the node's namespaces. It starts the supervisor and
// ends with it, and the kernel then ends all else; until then, it reaps what
// lost its parent, such as containerd's shims. A process that waits for children
// of its own, as the supervisor does, could not do that.
func runInit(status *os.File) (code int, err error) {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 0, fmt.Errorf("reading what to start: %w", err)
	}
	var s spec
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, fmt.Errorf("reading what to start: %w", err)
	}
	if err := s.Cgroup.join(0); err != nil {
		return 0, err
	}

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)

	//nolint:noctx // it ends at a signal, in order
	supervisor := exec.Command("/proc/self/exe")
	supervisor.Env = append(environWithout(partEnv), partEnv+"="+supervisorPart)
	supervisor.Stdin = strings.NewReader(string(text))
	supervisor.Stdout, supervisor.Stderr = os.Stdout, os.Stderr
	supervisor.ExtraFiles = []*os.File{status}
	// What is this process's cgroup now is the root of those that it sees.
	supervisor.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWCGROUP}
	if err := supervisor.Start(); err != nil {
		return 0, fmt.Errorf("starting the node's supervisor: %w", err)
	}
	for {
		select {
		case received := <-signals:
			if err := supervisor.Process.Signal(received); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return 0, fmt.Errorf("passing on %s: %w", received, err)
			}
		case <-children:
			if code, ended := reap(supervisor.Process.Pid); ended {
				return code, nil
			}
		}
	}
}

// reap takes leave of all children that have ended, and tells whether the one
// given is among them, and its exit code.
func reap(awaited int) (code int, ended bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid <= 0:
			return code, ended
		case pid == awaited && status.Signaled():
			code, ended = 128+int(status.Signal()), true
		case pid == awaited:
			code, ended = status.ExitStatus(), true
		}
	}
}

func environWithout(name string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, name+"=") {
			kept = append(kept, variable)
		}
	}
	return kept
}
