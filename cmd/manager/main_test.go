package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// mainEnv makes the test binary be the program.
const mainEnv = "MANAGER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
	}
	testplane.Main(m)
}

// program is the operator as a process of its own.
type program struct {
	*exec.Cmd
	stderr output
}

// newProgram has no cluster but one that args name.
func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], args...)}
	p.Env = append(os.Environ(), mainEnv+"=1", "KUBECONFIG=", "HOME="+t.TempDir())
	p.Stderr = &p.stderr
	return p
}

// start starts the program, and kills it at the test's end if it still runs.
func (p *program) start(t *testing.T) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
}

// end waits until the program ends, and returns its exit code. One that does not
// end is killed.
func (p *program) end(t *testing.T) int {
	t.Helper()
	kill := time.AfterFunc(testkit.Patience, func() { _ = p.Process.Kill() })
	defer kill.Stop()
	return exitCode(t, p.Wait())
}

// plainLines are the lines for people on stderr: those that are no log entries.
func (p *program) plainLines() []string {
	var plain []string
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.HasPrefix(line, "{") {
			plain = append(plain, line)
		}
	}
	return plain
}

// expectRefusal runs the program to its end, which must come at once, with
// that code and one line that has all of want in it.
func (p *program) expectRefusal(t *testing.T, code int, want ...string) {
	t.Helper()
	if got := exitCode(t, p.Run()); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	said := p.stderr.String()
	if strings.Count(said, "\n") != 1 {
		t.Errorf("said %q, want one line", said)
	}
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("said %q, want %q in it", said, w)
		}
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

// output may be read while it is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// kubeconfig writes config as a file and returns the flag that names it.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
			Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return "--kubeconfig=" + path
}
