//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/procfs"
)

// inside runs a shell command in the node and returns its output.
func inside(t *testing.T, n *Node, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := n.StartCommand(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, output.String())
	}
	return strings.TrimSpace(output.String())
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	n := start(t, Options{})
	seen := tracesOfRunning(t, n)
	if got := inside(t, n, "kubectl get nodes -o name"); got != "node/"+Name {
		t.Errorf("the nodes are %q", got)
	}

	for range 2 { // the second call changes nothing
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	seen.expectNoProcess(t)
	seen.expectNoCgroup(t)
	expectGone(t, n.Dir())
	if err := n.Wait(t.Context()); err != nil {
		t.Errorf("Wait takes an ordered stop for a failure: %v", err)
	}
	if err := n.StartCommand(exec.Command("true")); err == nil {
		t.Error("a command was started in a node that has stopped")
	}
}

// A kill of either of them must end all: process 1 because the kernel says so,
// the supervisor because process 1 ends with it.
func TestNodeEndsWithEachOfItsFirstProcesses(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(*testing.T, *Node) int{
		"process 1":  func(_ *testing.T, n *Node) int { return n.PID() },
		"supervisor": supervisorOf,
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, Options{})
			seen := tracesOfRunning(t, n)
			if err := syscall.Kill(pick(t, n), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := n.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "the node ended") {
				t.Errorf("Wait gives %v, want that the node ended", err)
			}
			if err := n.Stop(); err != nil {
				t.Fatal(err)
			}
			seen.expectNoProcess(t)
			seen.expectNoCgroup(t)
			expectGone(t, n.Dir())
		})
	}
}

// supervisorOf finds the child of process 1 that carries this program's name.
func supervisorOf(t *testing.T, n *Node) int {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || stat.PPID != n.PID() {
			continue
		}
		if environ, err := p.Environ(); err == nil && strings.Contains(strings.Join(environ, "\n"), partEnv+"="+supervisorPart) {
			return p.PID
		}
	}
	t.Fatal("the supervisor is not seen")
	return 0
}

func TestKilledOwnerTakesItsNodeAlong(t *testing.T) {
	t.Parallel()
	needsNode(t)
	dir := t.TempDir()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+dir)
	owner.Stderr = os.Stderr
	output, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	var seen traces
	decodeErr := json.NewDecoder(output).Decode(&seen)
	if decodeErr == nil {
		seen.expectSome(t)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = owner.Wait() // it was killed
	if decodeErr != nil {
		t.Fatal(decodeErr)
	}

	seen.expectNoProcess(t)
	// Nobody is there to remove the cgroups; the next node that starts does.
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cgroups are gone", func() bool {
		removeAbandonedCgroups(all)
		return len(seen.cgroups(t)) == 0
	})
}

func TestWaitTellsWhichProgramEnded(t *testing.T) {
	t.Parallel()
	n := start(t, Options{})
	inside(t, n, fmt.Sprintf("kill -KILL %d", n.up.Components["containerd"]))
	if err := n.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "containerd ended: signal: killed") {
		t.Errorf("Wait gives %v, want that containerd was killed", err)
	}
}

func TestAuditLogHoldsTheKubeletsRequests(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	n := start(t, Options{AuditLog: log})
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"username":"system:node:` + Name + `"`; !strings.Contains(string(text), want) {
		t.Errorf("the audit log lacks %s", want)
	}
}

func TestFailedStartTellsWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	needsNode(t)
	dir := t.TempDir()
	noImage := filepath.Join(t.TempDir(), "no-image.tar")
	_, err := Start(t.Context(), Options{Dir: dir, Images: []string{noImage}})
	if err == nil || !strings.Contains(err.Error(), noImage) {
		t.Errorf("error %v, want one that names %s", err, noImage)
	}
	mounts, mountErr := os.ReadFile("/proc/self/mounts")
	if mountErr != nil {
		t.Fatal(mountErr)
	}
	if strings.Contains(string(mounts), dir) {
		t.Errorf("left behind: a mount in %s", dir)
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	t.Parallel()
	needsNode(t)
	if _, err := Build(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestPathsThatTheNodeDoesNotSeeAreRefused(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]Options{
		"folder":    {Dir: "/run/node"},
		"audit log": {AuditLog: "/var/log/audit.log"},
		"image":     {Images: []string{"/run/image.tar"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := opts.resolve(); err == nil || !strings.Contains(err.Error(), "of its own") {
				t.Errorf("error %v, want that the node has a folder of its own there", err)
			}
		})
	}
	if _, err := (Options{Dir: "/running/node"}).resolve(); err != nil {
		t.Error(err)
	}
}
