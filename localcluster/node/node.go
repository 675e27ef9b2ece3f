//go:build linux

package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"avalonhosting.example/bucketoperator/localcluster/internal/process"
	"avalonhosting.example/bucketoperator/localcluster/internal/workdir"
)

// Node is a running node with its control plane. Its methods may be called from
// any goroutine.
type Node struct {
	programs Programs
	dir      *workdir.Dir
	cgroup   cgroup
	init     *exec.Cmd
	entrance *entrance
	up       up

	ended  chan struct{} // closed when all that ran in the namespaces is gone
	result error         // how process 1 ended; read only after ended is closed

	told    chan struct{} // closed when the parts inside have no more to tell
	failure string        // what they told; read only after told is closed

	stopping chan struct{}
	stop     func() error
}

// stopGrace is how long a node may take to end: it stops its API server, then
// etcd.
const stopGrace = 3 * process.StopGrace

// Start runs a node and returns once it is ready and names of services resolve.
// When it fails, nothing is left. The ctx bounds the start alone: the node runs
// until Stop, or until this process ends.
func Start(ctx context.Context, opts Options) (*Node, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	if err := checkMachine(); err != nil {
		return nil, err
	}
	opts, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	programs, err := Build(ctx, opts.Progress)
	if err != nil {
		return nil, err
	}
	n := &Node{programs: programs, ended: make(chan struct{}), told: make(chan struct{}), stopping: make(chan struct{})}
	n.stop = sync.OnceValue(n.stopAll)
	if n.dir, err = workdir.Open(opts.Dir); err != nil {
		return nil, fmt.Errorf("preparing the folder of the node: %w", err)
	}
	if err := n.start(ctx, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the node: %w", err), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, opts Options) error {
	if err := visible(n.dir.Path); err != nil {
		return err // TMPDIR can be anywhere
	}
	dir := layout(n.dir.Path)
	if err := dir.prepare(); err != nil {
		return err
	}
	own, err := writeOwnImages(n.programs, dir.images())
	if err != nil {
		return err
	}
	// The mount point of a folder that is not the machine's.
	if err := os.MkdirAll(cniCache, 0o755); err != nil {
		return err
	}
	s := spec{
		Folder: n.dir.Path, Kubernetes: n.programs.Kubernetes, Containerd: n.programs.Containerd,
		Images: append(own, opts.Images...), CRDs: opts.CRDs, AuditLog: opts.AuditLog, AuditPolicy: opts.AuditPolicy,
	}
	if s.Hierarchies, err = hierarchies(); err != nil {
		return err
	}
	removeAbandonedCgroups(s.Hierarchies)
	if n.cgroup, err = newCgroup(s.Hierarchies); err != nil {
		return err
	}
	s.Cgroup = n.cgroup
	status, err := n.startInit(s, opts.Progress)
	if err != nil {
		return err
	}
	return n.waitUp(ctx, status)
}

// startInit starts process 1 of new namespaces. The kernel kills it when this
// process ends, and then all that is in the namespaces.
func (n *Node) startInit(s spec, progress io.Writer) (status io.ReadCloser, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding what to start: %w", err)
	}
	reading, writing, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer writing.Close() // the child has a copy

	//nolint:noctx // Stop ends it, in order
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partEnv+"="+initPart)
	cmd.Stdin = bytes.NewReader(text)
	cmd.Stderr = progress
	cmd.ExtraFiles = []*os.File{writing}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
	if err := process.StartTied(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("making the node's namespaces: %w", err), reading.Close())
	}
	n.init = cmd
	go func() {
		n.result = cmd.Wait()
		close(n.ended)
	}()
	return reading, nil
}

// waitUp returns when the parts inside tell that the node is up.
func (n *Node) waitUp(ctx context.Context, status io.ReadCloser) error {
	isUp := make(chan up, 1)
	go n.listen(status, isUp)
	select {
	case n.up = <-isUp:
	case <-n.ended:
		return n.endedError()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var err error
	n.entrance, err = enter(n.init.Process.Pid)
	return err
}

// listen takes what the parts inside tell until the last of them is gone.
func (n *Node) listen(status io.ReadCloser, isUp chan<- up) {
	defer close(n.told)
	defer status.Close()
	messages := json.NewDecoder(status)
	for {
		var m message
		if err := messages.Decode(&m); err != nil {
			return // all have closed their end
		}
		switch {
		case m.Up != nil:
			isUp <- *m.Up
		case m.Error != "":
			n.failure = m.Error
		}
	}
}

// endedError tells why the node, which is gone, ended.
func (n *Node) endedError() error {
	<-n.told
	if n.failure != "" {
		return errors.New(n.failure)
	}
	return fmt.Errorf("the node ended: %w", cmp.Or(n.result, errors.New("exit status 0")))
}

// Wait returns nil when ctx ends or the node is stopped, and an error when one of
// its programs ends without having been asked to.
func (n *Node) Wait(ctx context.Context) error {
	select {
	case <-n.stopping:
	case <-ctx.Done():
	case <-n.ended:
		select {
		case <-n.stopping:
		default:
			return n.endedError()
		}
	}
	return nil
}

// Stop ends the control plane in order, and all else at once, and removes the
// node's cgroups, and its folder if it is temporary. When it returns, nothing is
// left. Calls after the first, also concurrent ones, wait for the first and
// return its result.
func (n *Node) Stop() error { return n.stop() }

func (n *Node) stopAll() error {
	close(n.stopping)
	if n.entrance != nil {
		n.entrance.close()
	}
	var err error
	if n.init != nil {
		err = n.stopInit()
	}
	//nolint:forbidigo // what is left must go, whoever has given up
	err = errors.Join(err, n.cgroup.remove(context.Background()), n.dir.Close())
	if err != nil {
		return fmt.Errorf("stopping the node: %w", err)
	}
	return nil
}

// stopInit asks the parts inside to end, and kills them if that takes too long.
func (n *Node) stopInit() error {
	select {
	case <-n.ended:
		return nil // Wait or Start has told why
	default:
	}
	if err := n.init.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending its processes: %w", err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-n.ended:
		<-n.told
		if n.failure != "" {
			return errors.New(n.failure)
		}
		return nil
	case <-grace.C:
	}
	if err := n.init.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing its processes: %w", err)
	}
	<-n.ended
	return nil
}
