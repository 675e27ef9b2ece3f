package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// mainEnv makes the test binary be the program.
const mainEnv = "LOCALCLUSTER_TEST_MAIN"

const (
	poll    = 50 * time.Millisecond
	timeout = 2 * time.Minute
)

func TestMain(m *testing.M) {
	nodeInside()
	if os.Getenv(mainEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is the command with those arguments, and the folder that it makes
// temporary files in.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	temp = t.TempDir()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), mainEnv+"=1", "TMPDIR="+temp)
	cmd.Stderr = os.Stderr
	return cmd, temp
}

func exitCodeOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left in the temporary folder: %v", left)
	}
}

func expectClosed(t *testing.T, server string) {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil || address.Host == "" {
		t.Fatalf("server %q: no address (%v)", server, err)
	}
	if connection, err := net.Dial("tcp", address.Host); err == nil {
		_ = connection.Close()
		t.Errorf("something still listens on %s", address.Host)
	}
}

func TestExecGivesTheCommandAClusterAndReturnsItsCode(t *testing.T) {
	t.Parallel()
	cmd, temp := program(t, "exec", "--", "sh", "-c",
		`test "$KUBECONFIG" = "$BUCKETOPERATOR_TEST_KUBECONFIG" && kubectl create namespace made && kubectl get crds -o name && exit 7`)
	output, err := cmd.Output()
	if code := exitCodeOf(t, err); code != 7 {
		t.Errorf("exit code %d, want the command's, 7", code)
	}
	for _, want := range []string{"namespace/made created", "storagebuckets"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("output %q lacks %q", output, want)
		}
	}
	expectEmpty(t, temp)
}

func TestExecRunsKubectlFromItsOwnPrograms(t *testing.T) {
	t.Parallel()
	cmd, _ := program(t, "exec", "--crds", filepath.Join("..", "..", "localcluster", "testdata"), "--", "kubectl", "get", "crds", "-o", "name")
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "customresourcedefinition.apiextensions.k8s.io/widgets.localcluster.example\n"; string(output) != want {
		t.Errorf("output %q, want %q", output, want)
	}
}

func TestInterruptedExecStopsCommandAndCluster(t *testing.T) {
	t.Parallel()
	// The command works with the cluster while it handles the signal: the
	// cluster must stop after it.
	const command = `trap 'kubectl get namespace default -o name; exit 5' INT
kubectl config view -o 'jsonpath={.clusters[0].cluster.server}{"\n"}'
while :; do read -r _ <"$FIFO" || :; done`
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	keepOpen, err := os.OpenFile(fifo, os.O_RDWR, 0) // so that reads block
	if err != nil {
		t.Fatal(err)
	}
	defer keepOpen.Close()

	cmd, temp := program(t, "exec", "--", "sh", "-c", command)
	cmd.Env = append(cmd.Env, "FIFO="+fifo)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(stdout)
	server, readErr := output.ReadString('\n')
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(output)
	if readErr = errors.Join(readErr, err); readErr != nil {
		t.Error(readErr)
	}
	if code := exitCodeOf(t, cmd.Wait()); code != 5 {
		t.Errorf("exit code %d, want the command's, 5", code)
	}
	if want := "namespace/default\n"; string(rest) != want {
		t.Errorf("the command, when interrupted, got %q from the cluster, want %q", rest, want)
	}
	expectClosed(t, strings.TrimSpace(server))
	expectEmpty(t, temp)
}

func TestUpStaysUntilInterrupted(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	cmd, temp := program(t, "up", "--kubeconfig", kubeconfig)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if readErr != nil || !strings.Contains(line, "The cluster is up") {
		t.Errorf("first line %q (%v), want that the cluster is up", line, readErr)
	}
	if code := exitCodeOf(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v, want a file with mode 600", info, err)
	}
	expectEmpty(t, temp)
}

func TestInterruptedStartIsClearedUp(t *testing.T) {
	t.Parallel()
	cmd, temp := program(t, "up")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// etcd's log is there: the start is under way.
	err := wait.PollUntilContextTimeout(t.Context(), poll, timeout, true, func(context.Context) (bool, error) {
		logs, err := filepath.Glob(filepath.Join(temp, "*", "logs", "etcd.log"))
		return len(logs) > 0, err
	})
	if err := errors.Join(err, cmd.Process.Signal(os.Interrupt)); err != nil {
		t.Error(err)
	}
	// Should the start have been faster, this is an ordered end: exit code 0.
	if code := exitCodeOf(t, cmd.Wait()); code != exitFailure && code != 0 {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	expectEmpty(t, temp)
}

func TestMistakesAreToldInOneLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"unknown command":         {[]string{"down"}, exitUsage, `unknown command "down"`},
		"exec without command":    {[]string{"exec"}, exitUsage, "exec needs a command"},
		"up with an argument":     {[]string{"up", "now"}, exitUsage, "up takes no arguments"},
		"build with argument":     {[]string{"build", "it"}, exitUsage, "build takes no arguments"},
		"policy without log":      {[]string{"up", "--audit-policy", "policy.yaml"}, exitFailure, "needs an audit log"},
		"CRDs that are not there": {[]string{"up", "--crds", "no-such-folder"}, exitFailure, "no-such-folder"},
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

func TestUnknownFlagIsAUsageError(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	if code := run([]string{"up", "--no-such-flag"}, io.Discard, &stderr); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	if !strings.Contains(stderr.String(), "no-such-flag") {
		t.Errorf("said %q, want the flag's name", stderr.String())
	}
}
