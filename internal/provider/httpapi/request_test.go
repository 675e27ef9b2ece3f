package httpapi_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

func TestRequestsAreThoseOfTheProtocol(t *testing.T) {
	t.Parallel()
	type request struct{ Method, Path, Key, Authorization, ContentType, Agent, Body string }
	requests := make(chan request, 1)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{r.Method, r.RequestURI, r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), r.UserAgent(), string(body)}
		_, _ = io.WriteString(w, `{"id":"a:b","phase":"Active"}`)
	}))
	client := open(t, newFactory(t, &httpapi.Factory{}), config(url+"/api/v1/"))
	const bearer, agent, jsonType = "Bearer " + canary, "bucketoperator", "application/json"
	for _, test := range []struct {
		call func() error
		want request
	}{
		{
			func() error { _, err := client.Create(t.Context(), "key-1", want); return err },
			request{"POST", "/api/v1/buckets", "key-1", bearer, jsonType, agent, `{"region":"us-east-1","sizeGB":100,"encrypted":true}`},
		},
		{
			func() error { _, err := client.Get(t.Context(), "a:b"); return err },
			request{"GET", "/api/v1/buckets/a:b", "", bearer, "", agent, ""},
		},
		{
			func() error { _, err := client.Resize(t.Context(), "a:b", 200); return err },
			request{"PATCH", "/api/v1/buckets/a:b", "", bearer, jsonType, agent, `{"sizeGB":200}`},
		},
		{
			func() error { return client.Delete(t.Context(), "a:b") },
			request{"DELETE", "/api/v1/buckets/a:b", "", bearer, "", agent, ""},
		},
		{
			func() error { return client.Probe(t.Context()) },
			request{"GET", "/api/v1/buckets/bucketoperator-probe", "", bearer, "", agent, ""},
		},
	} {
		if err := test.call(); err != nil {
			t.Errorf("%s %s: %v", test.want.Method, test.want.Path, err)
		}
		if diff := cmp.Diff(test.want, <-requests); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.want.Method, diff)
		}
	}
}

func TestNoCredentialsNoAuthorization(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, sent := r.Header["Authorization"]; sent {
			t.Error("an Authorization header was sent")
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	c := with(config(url), func(c *provider.Config) { c.Credentials = nil })
	if err := open(t, newFactory(t, &httpapi.Factory{}), c).Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	connections := 0
	mock := newMock(t, mockprovider.Options{})
	server := httptest.NewUnstartedServer(mock)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		if state == http.StateNew {
			connections++
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	factory := newFactory(t, &httpapi.Factory{})
	for range 5 {
		client := open(t, factory, config(server.URL))
		made, err := client.Create(t.Context(), "key-1", want)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.Get(t.Context(), "absent-1")
		_, _ = client.Resize(t.Context(), made.ID, 1)
		if _, err := client.Get(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if connections != 1 {
		t.Errorf("%d connections for one call after another, want 1", connections)
	}
}

// A create call that got lost on a connection in use is one that net/http
// repeats by itself, as it carries an Idempotency-Key. With a provider that
// ignores the key that makes a bucket that nobody knows of.
func TestLostCreateIsNotRepeatedBehindTheCallersBack(t *testing.T) {
	t.Parallel()
	mock := newMock(t, mockprovider.Options{Minimal: true})
	client := client(t, mock)
	if err := client.Probe(t.Context()); err != nil { // opens the connection
		t.Fatal(err)
	}
	mock.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{Drop: true, AfterWork: true}})
	_, err := client.Create(t.Context(), "key-1", want)
	if e := wantFailure(t, err, provider.Transient, "ProviderUnavailable"); e.Refused {
		t.Error("a lost answer counts as a refusal")
	}
	if got := len(mock.Buckets()); got != 1 {
		t.Errorf("one create call made %d buckets", got)
	}
}

func TestLostCreateIsFoundAgainByItsKey(t *testing.T) {
	t.Parallel()
	mock := newMock(t, mockprovider.Options{})
	client := client(t, mock)
	mock.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{Drop: true, AfterWork: true}})
	if _, err := client.Create(t.Context(), "key-1", want); err == nil {
		t.Fatal("the answer was not lost")
	}
	made, err := client.Create(t.Context(), "key-1", want)
	if err != nil {
		t.Fatal(err)
	}
	if buckets := mock.Buckets(); len(buckets) != 1 || buckets[0].ID != made.ID {
		t.Errorf("the provider has %+v, want only %s", buckets, made.ID)
	}
}
