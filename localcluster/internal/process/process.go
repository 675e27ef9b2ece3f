// Package process runs the programs of a cluster as children of this process:
// tied to its life, with a log each, and an end of that log in every error.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// StopGrace is how long a program may take to end after it was asked to.
	StopGrace = 20 * time.Second
	readyPoll = 50 * time.Millisecond

	// logTailLen is in bytes, logTailLines the most of them that an error shows.
	logTailLen   = 4 << 10
	logTailLines = 20
)

// Process is a running program. It is tied to this process: where the system
// can, it is killed when this one ends in any way.
type Process struct {
	Name string

	cmd     *exec.Cmd
	logPath string
	ended   chan struct{} // closed when the program is gone
	err     error         // why it ended; read only after ended is closed
}

// Start starts the program at path, called name in errors. What it writes is
// appended to the file logPath. Of this process's environment it gets PATH and
// TMPDIR alone.
func Start(name, path string, args []string, logPath string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer log.Close() // the child has a copy

	//nolint:noctx // Stop ends it, in order, and no context outlives its starter
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// Little else than PATH, or ETCD_... variables of the caller would count.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	if err := StartTied(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{Name: name, cmd: cmd, logPath: logPath, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended is closed when the program is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Result is what waiting for a program that is gone gave: nil for exit code 0.
func (p *Process) Result() error { return p.err }

// WaitReady probes until the program answers. It fails at once when the program
// ends, and with the probe's last error when ctx does.
func (p *Process) WaitReady(ctx context.Context, probe func(context.Context) error) error {
	var unready error
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, p.EndedError()
		default:
			unready = probe(ctx)
			return unready == nil, nil
		}
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("waiting for %s to be ready: %w (last answer: %w)%s", p.Name, context.Cause(ctx), unready, p.logTail())
	}
	return err
}

// EndedError tells why a program that is gone ended, with the end of its log.
func (p *Process) EndedError() error {
	reason := "exit status 0"
	if p.err != nil {
		reason = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s%s", p.Name, reason, p.logTail())
}

// logTail is the end of the program's log, for an error message.
func (p *Process) logTail() string {
	text, err := p.LogTail()
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > logTailLines {
		lines = lines[len(lines)-logTailLines:]
	}
	return "; the end of its log:\n\t" + strings.Join(lines, "\n\t")
}

// LogTail is the end of the program's log: a few kilobytes.
func (p *Process) LogTail() (string, error) {
	file, err := os.Open(p.logPath)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, min(logTailLen, info.Size()))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return "", err
	}
	return string(text), nil
}

// StopAll asks all the programs to end, kills those that have not after the
// grace time, and returns when all are gone.
func StopAll(processes []*Process) error {
	errs := make([]error, len(processes))
	var stopping sync.WaitGroup
	for i, p := range processes {
		stopping.Go(func() { errs[i] = p.Stop() })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

// Stop asks the program to end, and kills it if that takes longer than the
// grace time. When it returns, the program is gone.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.Name, err)
	}
	grace := time.NewTimer(StopGrace)
	defer grace.Stop()
	select {
	case <-p.ended:
		return nil
	case <-grace.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.Name, err)
	}
	<-p.ended
	return nil
}
