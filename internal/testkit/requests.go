package testkit

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// RoundTripper is an http.RoundTripper that is a function.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// Request is a request that the operator made.
type Request struct{ Method, Path, Body string }

// Writes tells whether the request may change something.
func (r Request) Writes() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// IsEvent tells Kubernetes Events, which are best effort, from the writes that count.
func (r Request) IsEvent() bool { return strings.Contains(r.Path, "/events") }

// Recorder records the operator's requests to one side.
type Recorder struct {
	// Before, if set, is called before a request goes out.
	Before func(Request)

	mu   sync.Mutex
	made []Request
}

// Wrap stands in front of next, as Settings.WrapAPI and WrapProvider do.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		made := Request{Method: request.Method, Path: request.URL.Path}
		if request.Body != nil {
			body, err := io.ReadAll(request.Body)
			if err != nil {
				return nil, err
			}
			made.Body = string(body)
			request = request.Clone(request.Context())
			request.Body = io.NopCloser(bytes.NewReader(body))
		}
		r.mu.Lock()
		r.made = append(r.made, made)
		r.mu.Unlock()
		if r.Before != nil {
			r.Before(made)
		}
		return next.RoundTrip(request)
	})
}

// Requests are the requests so far.
func (r *Recorder) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.made)
}

// WritesTo are the writes, other than events, to paths that end with one of the suffixes.
func (r *Recorder) WritesTo(suffixes ...string) []Request {
	return slices.DeleteFunc(r.Requests(), func(made Request) bool {
		ends := func(suffix string) bool { return strings.HasSuffix(made.Path, suffix) }
		return !made.Writes() || made.IsEvent() || !slices.ContainsFunc(suffixes, ends)
	})
}
