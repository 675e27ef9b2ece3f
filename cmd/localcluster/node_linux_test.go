package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needsNode skips a test that starts a node where that was not asked for.
func needsNode(t *testing.T) {
	t.Helper()
	if os.Getenv("BUCKETOPERATOR_TEST_NODES") == "" {
		t.Skip("starts a node, which needs root and a long first build: `make e2e` runs it, or set BUCKETOPERATOR_TEST_NODES")
	}
}

func TestNodeExecGivesTheCommandANodeAndReturnsItsCode(t *testing.T) {
	t.Parallel()
	needsNode(t)
	cmd, temp := program(t, "node", "exec", "--", "sh", "-c",
		`test -n "$BUCKETOPERATOR_NODE" && kubectl get nodes -o name && ctr version >&2 && exit 7`)
	output, err := cmd.Output()
	if code := exitCodeOf(t, err); code != 7 {
		t.Errorf("exit code %d, want the command's, 7", code)
	}
	if want := "node/node\n"; string(output) != want {
		t.Errorf("output %q, want %q", output, want)
	}
	expectEmpty(t, temp)
}

func TestNodeExecOfAnUnknownCommandSaysSo(t *testing.T) {
	t.Parallel()
	needsNode(t)
	cmd, temp := program(t, "node", "exec", "--", "no-such-program")
	var stderr bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &stderr)
	if code := exitCodeOf(t, cmd.Run()); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	if !strings.Contains(stderr.String(), "no-such-program") {
		t.Errorf("said %q, want the command's name", stderr.String())
	}
	expectEmpty(t, temp)
}

func TestInterruptedNodeExecStopsCommandAndNode(t *testing.T) {
	t.Parallel()
	needsNode(t)
	// The command works with the node while it handles the signal: the node must
	// stop after it.
	cmd, temp := program(t, "node", "exec", "--", "sh", "-c",
		`trap 'kubectl get nodes -o name; exit 5' INT; echo ready; while :; do sleep 1; done`)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	_, readErr := output.ReadString('\n')
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(output)
	if readErr != nil || err != nil {
		t.Error(readErr, err)
	}
	if code := exitCodeOf(t, cmd.Wait()); code != 5 {
		t.Errorf("exit code %d, want the command's, 5", code)
	}
	if want := "node/node\n"; string(rest) != want {
		t.Errorf("the command, when interrupted, got %q from the node, want %q", rest, want)
	}
	expectEmpty(t, temp)
}

func TestNodeUpStaysUntilInterrupted(t *testing.T) {
	t.Parallel()
	needsNode(t)
	cmd, temp := program(t, "node", "up")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	said, readErr := output.ReadString('\n')
	enter, err := output.ReadString('\n')
	if readErr != nil || err != nil {
		t.Error(readErr, err)
	}
	if !strings.Contains(said, "The node is up") {
		t.Errorf("first line %q, want that the node is up", said)
	}
	// The second line opens a shell inside; this gives it something to do.
	shell, _ := program(t)
	shell.Path, shell.Args = "/bin/sh", []string{"sh", "-c", enter}
	shell.Stdin = strings.NewReader("kubectl get nodes -o name\n")
	if got, err := shell.Output(); err != nil || string(got) != "node/node\n" {
		t.Errorf("%s printed %q (%v), want the node", strings.TrimSpace(enter), got, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if code := exitCodeOf(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	expectEmpty(t, temp)
}

func TestMistakesOfNodeAreToldInOneLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no subcommand":        {[]string{"node"}, exitUsage, "up, exec or build"},
		"unknown subcommand":   {[]string{"node", "down"}, exitUsage, `unknown subcommand "down"`},
		"exec without command": {[]string{"node", "exec"}, exitUsage, "node exec needs a command"},
		"up with an argument":  {[]string{"node", "up", "now"}, exitUsage, "node up takes no arguments"},
		"build with argument":  {[]string{"node", "build", "it"}, exitUsage, "node build takes no arguments"},
		"hidden folder":        {[]string{"node", "up", "--dir", filepath.Join("/run", "node")}, exitFailure, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if code := run(test.args, io.Discard, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stderr.String(), test.want) || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("said %q, want one line with %q", stderr.String(), test.want)
			}
		})
	}
}
