package httpapi_test

import (
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

func TestAnswersThatAreNotOfTheProtocol(t *testing.T) {
	t.Parallel()
	const malformed, large = "MalformedResponse", "ResponseTooLarge"
	for name, test := range map[string]struct {
		body   string
		reason string
		create bool // it is none to a create call either
	}{
		"HTML":                 {"<!DOCTYPE html><html><body>Welcome</body></html>", malformed, true},
		"nothing":              {"", malformed, true},
		"spaces":               {" \n", malformed, true},
		"text":                 {"OK", malformed, true},
		"null":                 {"null", malformed, true},
		"a list":               {`[{"id":"bucket-1","phase":"Active"}]`, malformed, true},
		"cut off":              {`{"id":"bucket-1","phase":"Act`, malformed, true},
		"more after it":        {`{"id":"bucket-1","phase":"Active"} {}`, malformed, true},
		"id with slashes":      {`{"id":"../../admin","phase":"Active"}`, malformed, true},
		"id a number":          {`{"id":1,"phase":"Active"}`, malformed, true},
		"id too long":          {`{"id":"` + strings.Repeat("a", 129) + `","phase":"Active"}`, malformed, true},
		"another bucket":       {`{"id":"bucket-2","phase":"Active"}`, malformed, false},
		"no phase":             {`{"id":"bucket-1"}`, malformed, false},
		"unknown phase":        {`{"id":"bucket-1","phase":"Ready"}`, malformed, false},
		"size too large":       {`{"id":"bucket-1","phase":"Active","sizeGB":2147483648}`, malformed, false},
		"size below 0":         {`{"id":"bucket-1","phase":"Active","sizeGB":-1}`, malformed, false},
		"size with a fraction": {`{"id":"bucket-1","phase":"Active","sizeGB":1.5}`, malformed, false},
		"size a word":          {`{"id":"bucket-1","phase":"Active","sizeGB":"1"}`, malformed, false},
		"encrypted a word":     {`{"id":"bucket-1","phase":"Active","encrypted":"yes"}`, malformed, false},
		"region too long":      {`{"id":"bucket-1","phase":"Active","region":"` + strings.Repeat("a", 64) + `"}`, malformed, false},
		"region with a break":  {`{"id":"bucket-1","phase":"Active","region":"a\nb"}`, malformed, false},
		"deeply nested":        {strings.Repeat(`{"a":`, 12_000) + strings.Repeat(`}`, 12_000), large, true},
		"10 MB":                {`{"id":"bucket-1","phase":"Active","x":"` + strings.Repeat("x", 10<<20) + `"}`, large, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := client(t, answering(200, nil, test.body))
			_, err := client.Get(t.Context(), "bucket-1")
			_ = wantFailure(t, err, provider.Transient, test.reason)
			made, err := client.Create(t.Context(), "key-1", want)
			if test.create {
				if e := wantFailure(t, err, provider.Transient, test.reason); e.Refused {
					t.Error("a create call counts as refused although a bucket may have been made")
				}
				return
			}
			// The id is good: to lose it would be to lose the bucket.
			if err != nil || !provider.CheckID(made.ID) {
				t.Errorf("Create = %+v, %v, want the id to be kept", made, err)
			}
		})
	}
}

// The connection would stay open for as long as the provider likes: neither a
// timeout nor the end of the context closes it.
func TestAChangeOfTheProtocolIsRefused(t *testing.T) {
	t.Parallel()
	client := client(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	}))
	_, err := client.Get(t.Context(), "bucket-1")
	_ = wantFailure(t, err, provider.Transient, "MalformedResponse")
}

func TestUnknownFieldsAndMissingOnesAreFine(t *testing.T) {
	t.Parallel()
	bucket, err := client(t, answering(200, nil, `{"phase":"Failed","colour":"blue","message":"disk\nfull, `+canary+`"}`)).Get(t.Context(), "bucket-1")
	if err != nil {
		t.Fatal(err)
	}
	if bucket.ID != "bucket-1" || bucket.Phase != provider.Failed || bucket.SizeGB != 0 || bucket.Encrypted != nil || bucket.Message != "disk full, [redacted]" {
		t.Errorf("Get = %+v", bucket)
	}
}

func TestRedirectIsNotFollowedAndTheTokenNotSentOn(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	for _, location := range []string{elsewhere, "/other", "://broken", "", "gopher://" + canary} {
		client := client(t, answering(http.StatusTemporaryRedirect, map[string]string{"Location": location}, ""))
		for name, call := range calls {
			e := wantFailure(t, call(t, client), provider.Transient, "RedirectRefused")
			if !strings.Contains(e.Message, "spec.endpoint") {
				t.Errorf("%s: %q does not say what to do", name, e.Message)
			}
		}
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(newMock(t, mockprovider.Options{}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resolver := resolverFor(t, "127.0.0.1")

	t.Run("a good one is taken", func(t *testing.T) {
		t.Parallel()
		client := open(t, newFactory(t, &httpapi.Factory{Egress: egress.Settings{Roots: egress.FixedRoots(roots)}}), config(server.URL))
		if err := client.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("one of an unknown authority is not", func(t *testing.T) {
		t.Parallel()
		err := open(t, newFactory(t, &httpapi.Factory{}), config(server.URL)).Probe(t.Context())
		if e := wantFailure(t, err, provider.Transient, "CertificateInvalid"); !e.Refused || !strings.Contains(e.Message, "authority") {
			t.Errorf("error = %#v", e)
		}
	})
	t.Run("one for another host is not", func(t *testing.T) {
		t.Parallel()
		factory := newFactory(t, &httpapi.Factory{Egress: egress.Settings{Roots: egress.FixedRoots(roots)}, Resolver: resolver})
		err := open(t, factory, config("https://buckets.test.:"+port)).Probe(t.Context())
		if e := wantFailure(t, err, provider.Transient, "CertificateInvalid"); !e.Refused || !strings.Contains(e.Message, "not for buckets.test") {
			t.Errorf("error = %#v", e)
		}
	})
	t.Run("a server without TLS is told as such", func(t *testing.T) {
		t.Parallel()
		plain := serve(t, newMock(t, mockprovider.Options{}))
		err := open(t, newFactory(t, &httpapi.Factory{}), config(strings.Replace(plain, "http:", "https:", 1))).Probe(t.Context())
		if e := wantFailure(t, err, provider.Transient, "HandshakeFailed"); !e.Refused {
			t.Errorf("error = %#v", e)
		}
	})
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]mockprovider.Fault{
		"hang before the work":    {Hang: true},
		"hang after the work":     {Hang: true, AfterWork: true},
		"dropped before the work": {Drop: true},
		"dropped after the work":  {Drop: true, AfterWork: true},
		"500 after the work":      {Status: 500, AfterWork: true},
		"too late":                {Latency: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mock := newMock(t, mockprovider.Options{})
			mock.Faults().Add(mockprovider.Rule{Fault: fault})
			factory := &httpapi.Factory{}
			if fault.Hang || fault.Latency > 0 {
				factory.Egress.Timeout = shortTimeout
			}
			client := open(t, newFactory(t, factory), config(serve(t, mock)))
			_, err := client.Create(t.Context(), "key-1", want)
			if e := wantFailure(t, err, provider.Transient, "ProviderUnavailable"); e.Refused {
				t.Error("a call that was sent counts as refused")
			}
		})
	}
}

func TestBrokenAnswersDoNotLeakTheKeyIntoTheLog(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a status line of its own": canary + " " + canary + "\r\n\r\n",
		"a bad status":             "HTTP/1.1 " + canary + "\r\n\r\n",
		"a bad header":             "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n",
		"a bad length":             "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n",
		"too short a body":         "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
		"endless headers":          "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"a bad chunk":              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				connection, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(connection, answer)
				_ = connection.Close()
			}))
			_, err := open(t, newFactory(t, &httpapi.Factory{}), config(url)).Get(t.Context(), "bucket-1")
			_ = wantFailure(t, err, provider.Transient, "ProviderUnavailable")
		})
	}
}

func TestCallsAreObservedWithBoundedCodes(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	factory := newFactory(t, &httpapi.Factory{
		Egress:  egress.Settings{Timeout: shortTimeout},
		Observe: func(operation, code string, _ float64) { seen[operation+" "+code]++ },
	})
	var next atomic.Int32
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next.Load() == 0 {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(int(next.Load()))
	}))
	call := func(c provider.Config) { _ = open(t, factory, c).Delete(t.Context(), "bucket-1") }
	for _, status := range []int32{204, 404, 500, 799, 0} {
		next.Store(status)
		call(config(url))
	}
	call(with(config(closedPort(t)), func(c *provider.Config) { c.Owner.Name = "closed" }))
	tight := with(config(url), func(c *provider.Config) { c.Owner.Name, c.Limits = "tight", egress.Limits{QPS: 1, Burst: 1} })
	next.Store(204)
	call(tight)
	_ = open(t, factory, tight).Delete(t.Context(), "bucket-2")
	want := map[string]int{
		"delete 204": 2, "delete 404": 1, "delete 500": 1, "delete other": 1, "delete timeout": 1, "delete error": 1, "delete throttled": 1,
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("observed %v, want %v", seen, want)
	}
}
