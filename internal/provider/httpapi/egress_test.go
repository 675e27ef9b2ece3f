package httpapi_test

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

// roundTripper is a function that is one.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The lease is lost when the call was let out already, and a connection is open.
func TestACallBehindTheFenceIsNotSentOnAnOpenConnection(t *testing.T) {
	t.Parallel()
	mock := newMock(t, mockprovider.Options{})
	var shut, closing atomic.Bool
	factory := newFactory(t, &httpapi.Factory{
		Egress: egress.Settings{Fence: func() error {
			if shut.Load() {
				return errors.New("another may lead")
			}
			return nil
		}},
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				shut.Store(closing.Load())
				return next.RoundTrip(r)
			})
		},
	})
	client := open(t, factory, config(serve(t, mock)))
	if err := client.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	closing.Store(true)
	for range 5 { // not enough to open a circuit, however many
		shut.Store(false)
		_, err := client.Create(t.Context(), "key-1", want)
		if e := wantFailure(t, err, provider.Transient, "NotLeading"); !e.Refused {
			t.Error("a call that was not sent counts as one that may have been done")
		}
	}
	if _, err := client.Get(t.Context(), "bucket-1"); provider.AsError(err).Reason != "NotLeading" {
		t.Errorf("Get = %v, want nothing to be let out", err)
	}
	if buckets := mock.Buckets(); len(buckets) != 0 {
		t.Errorf("the provider has %+v", buckets)
	}
}

// C3 of the buckets' cases.
func TestAnAuthorityThatIsAddedIsTrustedWithoutARestart(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(newMock(t, mockprovider.Options{}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	folder := t.TempDir()
	factory := newFactory(t, &httpapi.Factory{Egress: egress.Settings{Roots: egress.NewRoots(clock.RealClock{}, nil, []string{folder})}})
	client := open(t, factory, config(server.URL))
	e := wantFailure(t, client.Probe(t.Context()), provider.Transient, "CertificateInvalid")
	if !strings.Contains(e.Message, "authority that the operator does not know") {
		t.Errorf("message = %q", e.Message)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := client.Probe(t.Context()); err != nil {
		t.Errorf("once the authority was added: %v", err)
	}
}

// P6 of the buckets' cases: it is the client that lets an idle connection go, not
// the server, whose closing might cross with a call.
func TestIdleConnectionsAreLetGoBeforeTheServerDoesSo(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(newMock(t, mockprovider.Options{}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	if err := open(t, newFactory(t, &httpapi.Factory{}), config(server.URL)).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("an idle connection is still open")
	}
}

// The words tell where to put what must not be in the endpoint.
func TestAPasswordInTheEndpointHasItsCure(t *testing.T) {
	t.Parallel()
	_, err := newFactory(t, &httpapi.Factory{}).Open(provider.Config{Endpoint: "https://a:b@buckets.example.com"})
	const want = "spec.endpoint holds a user or password: leave them out, and put the API key into the Secret that spec.secretRef names"
	if e := provider.AsError(err); e.Message != want {
		t.Errorf("message = %q, want %q", e.Message, want)
	}
}

// A namespace's calls at an endpoint that all share are counted as its own.
func TestNamespacesShareAnEndpointOfTheOperators(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	endpoint := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // or the server does not see that the client is gone
			begun <- struct{}{}
			<-r.Context().Done()
		}
	}))
	factory := newFactory(t, &httpapi.Factory{Egress: egress.Settings{Pool: egress.NewPool(2)}})
	of := func(namespace string) provider.Client {
		return open(t, factory, provider.Config{
			Owner: egress.Destination{Name: "default-endpoint"}, Namespace: namespace, Endpoint: endpoint, Trusted: true,
		})
	}
	hog, modest := of("hog"), of("modest")
	go func() { _, _ = hog.Create(t.Context(), "key-1", want) }() // hangs
	<-begun
	if e := wantFailure(t, hog.Delete(t.Context(), "bucket-1"), provider.Throttled, "NamespaceBusy"); !e.Local || e.After <= 0 {
		t.Errorf("error = %#v", e)
	}
	if err := modest.Delete(t.Context(), "bucket-2"); err != nil {
		t.Errorf("beside a hog: %v", err)
	}
}
