package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

// canary is the API key of all tests. No error may hold it, in any spelling.
const canary = "canary/k3y+do-not-leak"

// shortTimeout is for calls that are to run into it. It leaves a busy machine
// enough time to send the call first.
const shortTimeout = time.Second

var want = provider.Spec{Region: "us-east-1", SizeGB: 100, Encrypted: true}

func newMock(t *testing.T, options mockprovider.Options) *mockprovider.Provider {
	t.Helper()
	mock, err := mockprovider.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return mock
}

// serve serves a handler on loopback, and answers with its URL.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// closedPort is a URL at which connections are refused: its port is taken, so
// that nobody else gets it, but not listened on.
func closedPort(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}

func newFactory(t *testing.T, factory *httpapi.Factory) *httpapi.Factory {
	t.Helper()
	t.Cleanup(factory.Close)
	return factory
}

func config(url string) provider.Config {
	return provider.Config{
		Owner: egress.Destination{Namespace: "ns", Name: "default"}, Namespace: "ns", Endpoint: url, Trusted: true,
		Credentials: map[string][]byte{"apiKey": []byte(canary)},
	}
}

func with(c provider.Config, change func(*provider.Config)) provider.Config {
	change(&c)
	return c
}

func open(t *testing.T, factory *httpapi.Factory, config provider.Config) provider.Client {
	t.Helper()
	client, err := factory.Open(config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return client
}

// client is a Client of a handler.
func client(t *testing.T, handler http.Handler) provider.Client {
	t.Helper()
	return open(t, newFactory(t, &httpapi.Factory{}), config(serve(t, handler)))
}

// answering answers every call in the same way.
func answering(status int, header map[string]string, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// wantFailure checks an error's class and reason, and that it is fit to be shown.
func wantFailure(t *testing.T, err error, class provider.Class, reason string) *provider.Error {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Fatalf("error = %v, want a *provider.Error", err)
	}
	if e.Class != class || e.Reason != reason {
		t.Errorf("error = %s %s (%s), want %s %s", e.Class, e.Reason, e.Message, class, reason)
	}
	if e.Message == "" || len(e.Message) > 1024 || strings.ContainsAny(e.Message, "\r\n") {
		t.Errorf("message %q is not fit for a condition", e.Message)
	}
	wantNoCanary(t, err)
	return e
}

// wantNoCanary looks into an error, as it is shown and as it might be logged.
func wantNoCanary(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e := provider.AsError(err)
	shown := fmt.Sprintf("%v %+v %s %v", err, err, e.Message, e.Cause)
	if strings.Contains(shown, canary) {
		t.Errorf("the API key is in %q", shown)
	}
}
