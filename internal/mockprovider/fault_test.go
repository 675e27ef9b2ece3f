package mockprovider_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

func TestRulesHitTheCallsThatTheyName(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule mockprovider.Rule
		want []int // of: create a, create b, get, get, delete
	}{
		"every call":         {mockprovider.Rule{}, []int{500, 500, 500, 500, 500}},
		"an operation":       {mockprovider.Rule{Operation: mockprovider.Get}, []int{201, 201, 500, 500, 204}},
		"the second":         {mockprovider.Rule{From: 2, Times: 1}, []int{201, 500, 200, 200, 204}},
		"from the third on":  {mockprovider.Rule{From: 3}, []int{201, 201, 500, 500, 500}},
		"the first two":      {mockprovider.Rule{Times: 2}, []int{500, 500, 404, 404, 204}},
		"a key":              {mockprovider.Rule{Key: "key-b"}, []int{201, 500, 200, 200, 204}},
		"a path":             {mockprovider.Rule{Path: "/buckets/"}, []int{201, 201, 500, 500, 500}},
		"a path of no call":  {mockprovider.Rule{Path: "/other"}, []int{201, 201, 200, 200, 204}},
		"an operation's 2nd": {mockprovider.Rule{Operation: mockprovider.Get, From: 2}, []int{201, 201, 200, 500, 204}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, mockprovider.Options{})
			test.rule.Fault.Status = 500
			rule := p.Faults().Add(test.rule)
			a := do(t, p, "POST", "/buckets", good, "Idempotency-Key", "key-a")
			path := "/buckets/bucket-0"
			if a.id() != "" {
				path = "/buckets/" + a.id()
			}
			got := []int{
				a.Status,
				do(t, p, "POST", "/buckets", good, "Idempotency-Key", "key-b").Status,
				do(t, p, "GET", path, "").Status,
				do(t, p, "GET", path, "").Status,
				do(t, p, "DELETE", path, "").Status,
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			hits := 0
			for _, status := range test.want {
				if status == 500 {
					hits++
				}
			}
			if rule.Hits() != hits {
				t.Errorf("Hits = %d, want %d", rule.Hits(), hits)
			}
		})
	}
}

func TestRulesAreRemoved(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{})
	first := p.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Status: 500}})
	p.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Status: 502}})
	wantStatus(t, do(t, p, "POST", "/buckets", good), 500)
	first.Remove()
	wantStatus(t, do(t, p, "POST", "/buckets", good), 502)
	p.Faults().Clear()
	wantStatus(t, do(t, p, "POST", "/buckets", good), 201)
}

func TestAnswersMadeUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   mockprovider.Fault
		buckets int
	}{
		"before the work": {mockprovider.Fault{Status: 503, RetryAfter: "7", ContentType: "text/html", Body: "<html>", Location: "/x"}, 0},
		"after the work":  {mockprovider.Fault{Status: 503, RetryAfter: "7", ContentType: "text/html", Body: "<html>", Location: "/x", AfterWork: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, mockprovider.Options{})
			p.Faults().Add(mockprovider.Rule{Fault: test.fault})
			a := wantStatus(t, do(t, p, "POST", "/buckets", good), 503)
			if a.Header.Get("Retry-After") != "7" || a.Header.Get("Content-Type") != "text/html" || a.Header.Get("Location") != "/x" {
				t.Errorf("header = %v", a.Header)
			}
			if got := len(p.Buckets()); got != test.buckets {
				t.Errorf("there are %d buckets, want %d", got, test.buckets)
			}
		})
	}
	t.Run("huge", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t, mockprovider.Options{})
		p.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{BodySize: 1 << 20}})
		a := wantStatus(t, do(t, p, "GET", "/buckets/bucket-1", ""), 200)
		if padding, _ := a.Body["padding"].(string); len(padding) < 1<<19 {
			t.Errorf("the padding has %d bytes", len(padding))
		}
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t, mockprovider.Options{})
		p.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Empty: true}})
		if a := wantStatus(t, do(t, p, "GET", "/buckets/bucket-1", ""), 200); a.Body != nil {
			t.Errorf("body = %v", a.Body)
		}
	})
}

func TestDroppedAndHangingCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   mockprovider.Fault
		buckets int
	}{
		"drop before the work": {mockprovider.Fault{Drop: true}, 0},
		"drop after the work":  {mockprovider.Fault{Drop: true, AfterWork: true}, 1},
		"hang before the work": {mockprovider.Fault{Hang: true}, 0},
		"hang after the work":  {mockprovider.Fault{Hang: true, AfterWork: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, mockprovider.Options{})
			rule := p.Faults().Add(mockprovider.Rule{Fault: test.fault})
			url := serve(t, p)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			request, err := http.NewRequestWithContext(ctx, "POST", url+"/buckets", strings.NewReader(good))
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				response, err := http.DefaultTransport.RoundTrip(request)
				if err == nil {
					err = errors.Join(response.Body.Close(), nil)
				}
				failed <- err
			}()
			if test.fault.Hang {
				for rule.Hits() == 0 || len(p.Buckets()) != test.buckets {
					select {
					case err := <-failed:
						t.Fatalf("the call did not hang: %v", err)
					default:
					}
				}
				leave()
			}
			if err := <-failed; err == nil {
				t.Error("the call was answered")
			}
			if got := len(p.Buckets()); got != test.buckets {
				t.Errorf("there are %d buckets, want %d", got, test.buckets)
			}
			if calls := p.Calls(); len(calls) != 1 || calls[0].Status != 0 || !calls[0].Faulted {
				t.Errorf("calls = %+v", calls)
			}
		})
	}
}
