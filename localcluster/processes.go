package localcluster

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
	// stopGrace is how long a program may take to end after it was asked to.
	stopGrace  = 20 * time.Second
	readyPoll  = 50 * time.Millisecond
	logTailLen = 4 << 10
)

// process is a running program of the control plane. It is tied to this
// process: where the system can, it is killed when this one ends in any way.
type process struct {
	name    string
	cmd     *exec.Cmd
	logPath string
	ended   chan struct{} // closed when the program is gone
	err     error         // why it ended; read only after ended is closed
}

func startProcess(name, path string, args []string, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer log.Close() // the child has a copy

	//nolint:noctx // stop ends it, in order, and no context outlives its starter
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// Little else than PATH, or ETCD_... variables of the caller would count.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	if err := startTied(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, logPath: logPath, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// waitReady probes until the program answers. It fails at once when the program
// ends, and with the probe's last error when ctx does.
func (p *process) waitReady(ctx context.Context, probe func(context.Context) error) error {
	var unready error
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, p.endedError()
		default:
			unready = probe(ctx)
			return unready == nil, nil
		}
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("waiting for %s to be ready: %w (last answer: %w)%s", p.name, context.Cause(ctx), unready, p.logTail())
	}
	return err
}

func (p *process) endedError() error {
	reason := "exit status 0"
	if p.err != nil {
		reason = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s%s", p.name, reason, p.logTail())
}

// logTail is the end of the program's log, for an error message.
func (p *process) logTail() string {
	text, err := readTail(p.logPath, logTailLen)
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > keptLines {
		lines = lines[len(lines)-keptLines:]
	}
	return "; the end of its log:\n\t" + strings.Join(lines, "\n\t")
}

func readTail(path string, size int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	text := make([]byte, min(size, info.Size()))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return "", err
	}
	return string(text), nil
}

// stopAll asks all the programs to end, kills those that have not after the
// grace time, and returns when all are gone.
func stopAll(processes []*process) error {
	errs := make([]error, len(processes))
	var stopping sync.WaitGroup
	for i, p := range processes {
		stopping.Go(func() { errs[i] = p.stop() })
	}
	stopping.Wait()
	return errors.Join(errs...)
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-p.ended:
		return nil
	case <-grace.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}
