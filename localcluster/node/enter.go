//go:build linux

package node

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// entered are the namespaces that commands are started in. The cgroup namespace
// is not among them: a command is no part of the node, and counts as its
// caller's.
const entered = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// entrance starts commands in the namespaces of another process. They are
// children of this process nevertheless, which can wait for them and signal them.
type entrance struct {
	calls chan func()
	done  chan struct{}
}

// enter takes one thread of this process into the namespaces, for good.
func enter(pid int) (*entrance, error) {
	e := &entrance{calls: make(chan func()), done: make(chan struct{})}
	result := make(chan error)
	onOwnThread(func() {
		err := enterThread(pid)
		result <- err
		if err == nil {
			e.serve()
		}
	})
	if err := <-result; err != nil {
		return nil, fmt.Errorf("entering the node's namespaces: %w", err)
	}
	return e, nil
}

// onOwnThread runs the function on a thread that nothing else uses, and that ends
// with it. That is never the process's first: what others, and /proc/self, see as
// the namespaces of a process are those of its first thread.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // still locked, and so the thread ends
		}
		// As long as this one is locked to the first thread, no other gets it.
		defer runtime.UnlockOSThread()
		locked := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(locked)
			f()
		}()
		<-locked
	}()
}

func enterThread(pid int) error {
	// A thread that shares its working folder with others cannot go to another
	// mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	return unix.Setns(process, entered)
}

func (e *entrance) serve() {
	for {
		select {
		case call := <-e.calls:
			call()
		case <-e.done:
			return
		}
	}
}

// start starts the command as its method Start does, but inside.
func (e *entrance) start(cmd *exec.Cmd) error {
	if cmd.Dir == "" {
		// The thread's working folder is that of the namespace now: its root.
		var err error
		if cmd.Dir, err = os.Getwd(); err != nil {
			return err
		}
	}
	started := make(chan error, 1)
	select {
	case e.calls <- func() { started <- cmd.Start() }:
		return <-started
	case <-e.done:
		return fmt.Errorf("starting %s: the node has stopped", cmd.Path)
	}
}

func (e *entrance) close() { close(e.done) }
