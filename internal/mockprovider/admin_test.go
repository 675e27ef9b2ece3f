package mockprovider_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

func TestAdminMakesFaults(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{})
	admin := p.Admin()
	wantStatus(t, do(t, admin, "POST", "/_mock/faults", `{"operation":"Create","status":503,"retryAfter":"7","times":1,"afterWork":true,"latency":"1ms"}`), 204)
	if a := wantStatus(t, do(t, p, "POST", "/buckets", good), 503); a.Header.Get("Retry-After") != "7" {
		t.Errorf("header = %v", a.Header)
	}
	wantStatus(t, do(t, admin, "POST", "/_mock/faults", `{"status":500}`), 204)
	wantStatus(t, do(t, admin, "DELETE", "/_mock/faults", ""), 204)
	wantStatus(t, do(t, p, "POST", "/buckets", good), 201)
}

func TestAdminRefusesRulesThatWouldNeverHit(t *testing.T) {
	t.Parallel()
	admin := newProvider(t, mockprovider.Options{}).Admin()
	for name, body := range map[string]string{
		"no JSON": "x", "an unknown field": `{"stats":500}`, "an unknown operation": `{"operation":"create","drop":true}`,
		"a bad latency": `{"latency":"5"}`, "a bad status": `{"status":99}`, "nothing to do": `{"operation":"Create"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := wantStatus(t, do(t, admin, "POST", "/_mock/faults", body), 400)
			if message, _ := a.Body["error"].(string); message == "" {
				t.Errorf("body = %v, want an error in words", a.Body)
			}
		})
	}
}

func TestAdminShowsAndChangesBuckets(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{})
	admin := p.Admin()
	id := do(t, p, "POST", "/buckets", good, "Idempotency-Key", "key-1").id()
	wantStatus(t, do(t, admin, "PUT", "/_mock/buckets/"+id+"/phase", `{"phase":"Failed","message":"full"}`), 204)
	wantStatus(t, do(t, admin, "PUT", "/_mock/buckets/"+id+"/phase", `{"phase":"failed"}`), 400)
	w := httptest.NewRecorder()
	admin.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_mock/buckets", nil))
	for _, part := range []string{id, "key-1", `"phase":"Failed"`, `"message":"full"`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("buckets = %s, want %s among it", w.Body, part)
		}
	}
	wantStatus(t, do(t, admin, "DELETE", "/_mock/buckets/"+id, ""), 204)
	wantStatus(t, do(t, admin, "DELETE", "/_mock/buckets/"+id, ""), 404)
	wantStatus(t, do(t, p, "GET", "/buckets/"+id, ""), 404)
	calls := wantStatus(t, do(t, admin, "GET", "/_mock/calls", ""), 200)
	counts, _ := calls.Body["counts"].(map[string]any)
	if counts["Create"] != 1.0 || counts["Get"] != 1.0 {
		t.Errorf("counts = %v", counts)
	}
	wantStatus(t, do(t, admin, "DELETE", "/_mock/calls", ""), 204)
}
