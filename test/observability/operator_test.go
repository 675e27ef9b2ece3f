package observability_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// operator is the operator as a process of its own.
type operator struct {
	program     *localcluster.Program
	address     string // of its metrics
	certificate *certificate
	log         string // a file
}

// startOperator starts the operator, at work in one namespace, and waits until
// it is ready. It is stopped at the test's end.
func startOperator(t *testing.T, namespace string, flags ...string) *operator {
	t.Helper()
	o := &operator{address: freeAddress(t), certificate: newCertificate(t), log: filepath.Join(t.TempDir(), "operator.log")}
	probes := freeAddress(t)
	var err error
	o.program, err = localcluster.StartProgram("the operator", built(t), append([]string{
		"--kubeconfig=" + writeKubeconfig(t, testplane.Config()), "--namespaces=" + namespace,
		"--leader-elect", "--leader-election-namespace=" + namespace,
		// With its own times, a machine that is busy with other things would end it.
		"--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s",
		"--metrics-bind-address=" + o.address, "--metrics-cert-path=" + o.certificate.folder,
		"--health-probe-bind-address=" + probes, "--allow-loopback-endpoints",
	}, flags...), o.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.stop(t) })
	testkit.Eventually(t, func(ctx context.Context) string {
		select {
		case <-o.program.Ended():
			t.Fatal(o.program.Err())
		default:
		}
		status, _, err := get(ctx, http.DefaultClient, "http://"+probes+"/readyz", "")
		if err != nil || status != http.StatusOK {
			return fmt.Sprintf("readiness: %d %v", status, err)
		}
		return ""
	})
	return o
}

// stop stops the operator. It may be called more than once.
func (o *operator) stop(t *testing.T) {
	t.Helper()
	if err := o.program.Stop(); err != nil {
		t.Error(err)
	}
}

// metrics asks for the operator's metrics, and trusts nothing but the
// certificate that is in its folder now.
func (o *operator) metrics(ctx context.Context, token string) (status int, body string, err error) {
	chain, err := os.ReadFile(o.certificate.file())
	if err != nil {
		return 0, "", err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(chain)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	return get(ctx, client, "https://"+o.address+"/metrics", token)
}

func get(ctx context.Context, client *http.Client, url, token string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// freeAddress is one on loopback that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// built is the path of the operator's program. It stays, so that the next test
// run need not link it again.
func built(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("building the operator: %v", err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	root, err := localcluster.ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "test", "manager")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/manager")
	cmd.Dir = root
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return path, nil
})

// writeKubeconfig writes the configuration of a client as a file.
func writeKubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	const name = "observed"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientCertificate: config.CertFile,
		ClientKeyData: config.KeyData, ClientKey: config.KeyFile,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}
