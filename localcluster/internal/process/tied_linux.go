package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter runs functions on one thread that lives as long as this process. The
// kernel sends a child its Pdeathsig when the THREAD that forked it ends, and
// the Go runtime ends threads as it likes.
var starter = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

// StartTied starts a command that is killed when this process ends, however it
// ends. The command gets a process group of its own, so that a terminal's Ctrl-C
// reaches only this process, which then stops its children in order.
func StartTied(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error, 1)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}
