package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"avalonhosting.example/bucketoperator/localcluster"
)

// address is one address for API servers that come and go.
type address struct {
	*httptest.Server
	server atomic.Pointer[httputil.ReverseProxy] // nil while there is none
	// read is called for each answer to a GET of a lease, with its namespace.
	read atomic.Pointer[func(namespace string)]
}

func newAddress(t *testing.T) *address {
	t.Helper()
	a := &address{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server := a.server.Load()
		if server == nil {
			http.Error(w, "there is no API server", http.StatusBadGateway)
			return
		}
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// lead makes the address that of a cluster.
func (a *address) lead(t *testing.T, cluster *localcluster.Cluster) {
	t.Helper()
	transport, err := rest.TransportFor(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(cluster.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	a.server.Store(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			namespace, is := strings.CutSuffix(response.Request.URL.Path, "/leases/"+leaseName)
			if read := a.read.Load(); is && read != nil && response.Request.Method == http.MethodGet && response.StatusCode == http.StatusOK {
				(*read)(filepath.Base(namespace))
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	})
}

// ended stops a cluster that is at the address.
func (a *address) end(t *testing.T, cluster *localcluster.Cluster) {
	t.Helper()
	a.server.Store(nil)
	a.CloseClientConnections()
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
}

// startIn starts a cluster that goes on with the data in the folder.
func startIn(t *testing.T, folder string) *localcluster.Cluster {
	t.Helper()
	crds, err := localcluster.ProjectCRDs()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Dir: folder, CRDs: []string{crds}, NoControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	return cluster
}

// Their caches hold what is not so any more, and no event corrects them.
func TestReplicasEndThemselvesAfterEtcdCameBackOlder(t *testing.T) {
	t.Parallel()
	folder, snapshot := t.TempDir(), filepath.Join(t.TempDir(), "snapshot")
	data := filepath.Join(folder, "etcd")
	api := newAddress(t)

	// Before the snapshot: two leases that nobody renews.
	cluster := startIn(t, folder)
	client := kubernetes.NewForConfigOrDie(cluster.Config())
	for _, namespace := range []string{"leads", "stands-by"} {
		makeLease(t, client, namespace)
	}
	api.end(t, cluster)
	if err := os.CopyFS(snapshot, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}

	// After it: one replica leads, and of another lease one is a standby.
	cluster = startIn(t, folder)
	client = kubernetes.NewForConfigOrDie(cluster.Config())
	var standbyReads atomic.Int32
	count := func(namespace string) {
		if namespace == "stands-by" {
			standbyReads.Add(1)
		}
	}
	api.read.Store(&count)
	api.lead(t, cluster)
	takeLease(t, client, "stands-by")
	replicas := map[string]*program{}
	for _, namespace := range []string{"leads", "stands-by"} {
		// A leader that cannot reach the API server ends for that reason alone, unless it is patient.
		replicas[namespace], _ = runOperator(t, namespace, kubeconfig(t, &rest.Config{Host: api.URL}),
			"--leader-elect-lease-duration=600s", "--leader-elect-renew-deadline=590s", "--leader-elect-retry-period=200ms")
	}
	eventually(t, func() string {
		if held := leader(t, client, "leads"); held == "" || standbyReads.Load() == 0 {
			return fmt.Sprintf("%q leads, and the standby has read its lease %d times", held, standbyReads.Load())
		}
		return ""
	})

	api.end(t, cluster)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(snapshot)); err != nil {
		t.Fatal(err)
	}
	api.lead(t, startIn(t, folder))
	for namespace, p := range replicas {
		if code := p.end(t); code != exitFailure {
			t.Errorf("the replica that %s ended with %d, want %d", namespace, code, exitFailure)
		}
		plain := p.plainLines()
		if len(plain) != 1 || !strings.Contains(plain[0], "went back in time") || !strings.Contains(plain[0], leaseName) {
			t.Errorf("the replica that %s said %q, want one line that the data went back\n%s", namespace, plain, p.stderr.String())
		}
	}
}

// makeLease makes a namespace with a lease that nobody holds.
func makeLease(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}}
	if _, err := client.CoordinationV1().Leases(namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
