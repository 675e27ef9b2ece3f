package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// mainEnv makes the test binary be the program.
const mainEnv = "QUICKSTART_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// quickstart is the program under test, in folders of its own.
type quickstart struct {
	*exec.Cmd
	temp, bin string
}

func newQuickstart(t *testing.T, args ...string) *quickstart {
	t.Helper()
	q := &quickstart{temp: t.TempDir(), bin: t.TempDir()}
	q.Cmd = exec.Command(os.Args[0], append(args, "--dir", q.dir())...)
	q.Env = append(os.Environ(), mainEnv+"=1", "TMPDIR="+q.temp)
	q.Stderr = os.Stderr
	return q
}

func (q *quickstart) dir() string { return filepath.Join(q.bin, "quickstart") }

func (q *quickstart) kubeconfig() string { return filepath.Join(q.dir(), "kubeconfig") }

// kubectl is what a user types in another terminal.
func (q *quickstart) kubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(q.bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+q.kubeconfig(), "KUBECACHEDIR="+t.TempDir())
	return cmd
}

// up starts the program and returns what it says once all is up.
func (q *quickstart) up(t *testing.T) string {
	t.Helper()
	stdout, err := q.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Process.Kill() }) // it is gone, unless the test failed
	var said strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return said.String()
		}
	}
	t.Fatalf("it ended (%v) before all was up, and said:\n%s", q.Wait(), said.String())
	return ""
}

func (q *quickstart) expectNothingLeft(t *testing.T) {
	t.Helper()
	for _, dir := range []string{q.temp, q.bin} {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v (%v)", dir, left, err)
		}
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

func exitCode(t *testing.T, err error) int {
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

func TestDemoWalksABucketThroughItsLife(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"with a full provider":    nil,
		"with a minimal provider": {"--minimal-provider"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQuickstart(t, append([]string{"demo", "--activate-after=1s"}, flags...)...)
			said, err := q.Output()
			if code := exitCode(t, err); code != 0 {
				t.Errorf("exit code %d, want 0; it said:\n%s", code, said)
			}
			for _, want := range []string{"\n1. ", "\n5. ", "media-assets created", "\n   []\n", "That was all."} {
				if !strings.Contains(string(said), want) {
					t.Errorf("it did not say %q, but:\n%s", want, said)
				}
			}
			q.expectNothingLeft(t)
		})
	}
}

func TestRunServesTheSampleUntilInterruptedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	q := newQuickstart(t, "run", "--activate-after=0s")
	said := q.up(t)

	kubeconfig := q.kubeconfig()
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v, want a file with mode 600", info, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	get := q.kubectl(t, "get", "sbucket", "media-assets", "-o", "jsonpath={.status.phase}")
	if phase, err := get.Output(); string(phase) != "Active" {
		t.Errorf("phase %q (%v), want Active", phase, err)
	}
	provider := regexp.MustCompile(`curl (\S+)`).FindStringSubmatch(said)
	if provider == nil {
		t.Fatalf("it did not say where the provider is, but:\n%s", said)
	}

	if err := q.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if code := exitCode(t, q.Wait()); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	expectClosed(t, config.Host)
	expectClosed(t, provider[1])
	q.expectNothingLeft(t)
}

func TestSecondStartInAFolderIsToldThatItIsInUse(t *testing.T) {
	t.Parallel()
	first := newQuickstart(t, "run", "--activate-after=0s")
	first.up(t)
	second := exec.Command(os.Args[0], "demo", "--dir", first.dir())
	second.Env = append(os.Environ(), mainEnv+"=1")
	var stderr bytes.Buffer
	second.Stderr = &stderr
	if code := exitCode(t, second.Run()); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	if said := stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "already runs in "+first.dir()) {
		t.Errorf("it said %q, want one line that another runs", said)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if code := exitCode(t, first.Wait()); code != 0 {
		t.Errorf("exit code of the first %d, want 0", code)
	}
}

func TestProgramThatDiesIsBlamedAndTakesTheRestAlong(t *testing.T) {
	t.Parallel()
	q := newQuickstart(t, "run", "--activate-after=0s")
	var stderr bytes.Buffer
	q.Stderr = &stderr
	q.up(t)
	// The operator ends when another has its lease.
	take := q.kubectl(t, "patch", "lease", "bucketoperator-leader", "-n", "bucketoperator-system", "--type=merge",
		"-p", `{"spec":{"holderIdentity":"another","leaseDurationSeconds":600}}`)
	if output, err := take.CombinedOutput(); err != nil {
		t.Fatalf("taking the lease: %v: %s", err, output)
	}
	if code := exitCode(t, q.Wait()); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	if want := "quickstart: the operator ended: exit status 1; the end of its log:"; !strings.Contains(stderr.String(), want) {
		t.Errorf("it said:\n%s\nwant %q in it", stderr.String(), want)
	}
	q.expectNothingLeft(t)
}

func TestMistakesAreToldInOneLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"unknown command": {[]string{"walk"}, `unknown command "walk"`},
		"unknown flag":    {[]string{"run", "--fast"}, "-fast"},
		"argument":        {[]string{"demo", "now"}, `unexpected argument "now"`},
		"negative delay":  {[]string{"run", "--activate-after=-1s"}, "--activate-after cannot be below 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if code := run(t.Context(), test.args, io.Discard, &stderr); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if said := stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, test.want) {
				t.Errorf("said %q, want one line with %q", said, test.want)
			}
		})
	}
}
