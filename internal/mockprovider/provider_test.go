package mockprovider_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

const good = `{"region":"us-east-1","sizeGB":100,"encrypted":true}`

func newProvider(t *testing.T, options mockprovider.Options) *mockprovider.Provider {
	t.Helper()
	p, err := mockprovider.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answer is an answer that came.
type answer struct {
	Status int
	Body   map[string]any
	Header http.Header
}

func (a answer) id() string { id, _ := a.Body["id"].(string); return id }

// do calls a handler without a network. Header is pairs of name and value.
func do(t *testing.T, handler http.Handler, method, path, body string, header ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header()}
	if strings.HasPrefix(strings.TrimSpace(w.Body.String()), "{") {
		if err := json.Unmarshal(w.Body.Bytes(), &a.Body); err != nil {
			t.Fatalf("%s %s answered with %q", method, path, w.Body)
		}
	}
	return a
}

func wantStatus(t *testing.T, a answer, want int) answer {
	t.Helper()
	if a.Status != want {
		t.Fatalf("status = %d (%v), want %d", a.Status, a.Body, want)
	}
	return a
}

func TestLifeOfABucket(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Now())
	p := newProvider(t, mockprovider.Options{ActivateAfter: 5 * time.Second, Clock: clock})
	made := wantStatus(t, do(t, p, "POST", "/buckets", good), 201)
	want := map[string]any{"id": made.id(), "region": "us-east-1", "phase": "Provisioning", "sizeGB": 100.0, "encrypted": true}
	if diff := cmp.Diff(want, made.Body); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	path := "/buckets/" + made.id()
	clock.Step(5*time.Second - 1)
	if got := wantStatus(t, do(t, p, "GET", path, ""), 200); got.Body["phase"] != "Provisioning" {
		t.Errorf("phase = %v a moment too early", got.Body["phase"])
	}
	clock.Step(1)
	if got := wantStatus(t, do(t, p, "GET", path, ""), 200); got.Body["phase"] != "Active" {
		t.Errorf("phase = %v, want Active", got.Body["phase"])
	}
	if got := wantStatus(t, do(t, p, "PATCH", path, `{"sizeGB":200}`), 200); got.Body["sizeGB"] != 200.0 {
		t.Errorf("sizeGB = %v, want 200", got.Body["sizeGB"])
	}
	wantStatus(t, do(t, p, "PATCH", path, `{"sizeGB":100}`), 422)
	wantStatus(t, do(t, p, "DELETE", path, ""), 204)
	wantStatus(t, do(t, p, "DELETE", path, ""), 204)
	wantStatus(t, do(t, p, "GET", path, ""), 404)
	wantStatus(t, do(t, p, "PATCH", path, `{"sizeGB":300}`), 404)
}

func TestActiveAtOnce(t *testing.T) {
	t.Parallel()
	if made := do(t, newProvider(t, mockprovider.Options{}), "POST", "/buckets", good); made.Body["phase"] != "Active" {
		t.Errorf("phase = %v, want Active", made.Body["phase"])
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{})
	made := do(t, p, "POST", "/buckets", good)
	for name, test := range map[string]struct {
		method, path, body string
		want               int
	}{
		"unknown region":      {"POST", "/buckets", `{"region":"atlantis-1","sizeGB":1}`, 422},
		"no region":           {"POST", "/buckets", `{"sizeGB":1}`, 422},
		"no size":             {"POST", "/buckets", `{"region":"us-east-1"}`, 422},
		"too large":           {"POST", "/buckets", `{"region":"us-east-1","sizeGB":1000001}`, 422},
		"no JSON":             {"POST", "/buckets", `region: us-east-1`, 400},
		"size a word":         {"POST", "/buckets", `{"region":"us-east-1","sizeGB":"1"}`, 400},
		"endless":             {"POST", "/buckets", strings.Repeat(" ", 1<<20), 413},
		"size 0":              {"PATCH", "/buckets/" + made.id(), `{"sizeGB":0}`, 422},
		"no size to resize":   {"PATCH", "/buckets/" + made.id(), `{}`, 422},
		"resize without JSON": {"PATCH", "/buckets/" + made.id(), `x`, 400},
		"another path":        {"GET", "/", "", 404},
		"list":                {"GET", "/buckets", "", 404},
		"admin":               {"GET", "/_mock/buckets", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := wantStatus(t, do(t, p, test.method, test.path, test.body), test.want)
			if message, _ := a.Body["error"].(string); message == "" {
				t.Errorf("body = %v, want an error in words", a.Body)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(p.Buckets()); n != 1 {
			t.Errorf("there are %d buckets, want the one from the start", n)
		}
	})
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{})
	key := []string{"Idempotency-Key", "key-1"}
	first := wantStatus(t, do(t, p, "POST", "/buckets", good, key...), 201)
	again := wantStatus(t, do(t, p, "POST", "/buckets", `{"region":"us-east-1","sizeGB":200}`, key...), 200)
	if diff := cmp.Diff(first.Body, again.Body); diff != "" {
		t.Errorf("the same key (-first +again):\n%s", diff)
	}
	wantStatus(t, do(t, p, "POST", "/buckets", `{"region":"eu-west-1","sizeGB":100}`, key...), 409)
	wantStatus(t, do(t, p, "DELETE", "/buckets/"+first.id(), ""), 204)
	late := wantStatus(t, do(t, p, "POST", "/buckets", good, key...), 409)
	if want := "this idempotency key made bucket " + first.id() + ", which has been deleted"; late.Body["error"] != want {
		t.Errorf("error = %q, want %q", late.Body["error"], want)
	}

	// A bucket that vanished is another matter: its key makes a new one.
	other := wantStatus(t, do(t, p, "POST", "/buckets", good, "Idempotency-Key", "key-2"), 201)
	if found, err := p.Vanish(other.id()); !found || err != nil {
		t.Fatalf("Vanish = %v, %v", found, err)
	}
	if made := wantStatus(t, do(t, p, "POST", "/buckets", good, "Idempotency-Key", "key-2"), 201); made.id() == other.id() {
		t.Errorf("the new bucket has the old id %s", made.id())
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{APIKeys: map[string]string{"old": "a", "new": "a", "other": "b"}})
	post := func(token string) answer {
		return do(t, p, "POST", "/buckets", good, "Authorization", "Bearer "+token, "Idempotency-Key", "key-1")
	}
	get := func(token, id string) answer {
		return do(t, p, "GET", "/buckets/"+id, "", "Authorization", "Bearer "+token)
	}
	for _, header := range []string{"", "Bearer ", "Bearer wrong", "Basic old", "old"} {
		wantStatus(t, do(t, p, "POST", "/buckets", good, "Authorization", header), 401)
	}
	made := wantStatus(t, post("old"), 201)
	if again := wantStatus(t, post("new"), 200); again.id() != made.id() {
		t.Error("another token of the same account made another bucket")
	}
	if foreign := wantStatus(t, post("other"), 201); foreign.id() == made.id() {
		t.Error("another account got the bucket")
	}
	wantStatus(t, get("new", made.id()), 200)
	wantStatus(t, get("other", made.id()), 404)
	wantStatus(t, do(t, p, "DELETE", "/buckets/"+made.id(), "", "Authorization", "Bearer other"), 204)
	wantStatus(t, get("old", made.id()), 200)
	p.SetAPIKeys(map[string]string{"new": "a"})
	wantStatus(t, get("old", made.id()), 401)
	wantStatus(t, get("new", made.id()), 200)
}

func TestMinimal(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{Minimal: true})
	first := wantStatus(t, do(t, p, "POST", "/buckets", `{"region":"us-east-1","sizeGB":"what is that"}`, "Idempotency-Key", "key-1"), 201)
	second := wantStatus(t, do(t, p, "POST", "/buckets", good, "Idempotency-Key", "key-1"), 201)
	if first.id() == second.id() {
		t.Error("the idempotency key was not ignored")
	}
	want := map[string]any{"id": first.id(), "region": "us-east-1", "phase": "Active"}
	if diff := cmp.Diff(want, do(t, p, "GET", "/buckets/"+first.id(), "").Body); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	wantStatus(t, do(t, p, "PATCH", "/buckets/"+first.id(), `{"sizeGB":2}`), 405)
	wantStatus(t, do(t, p, "DELETE", "/buckets/"+first.id(), ""), 204)
}

func TestFileOutlivesTheProvider(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "buckets.json")
	p := newProvider(t, mockprovider.Options{File: file})
	kept := do(t, p, "POST", "/buckets", good, "Idempotency-Key", "kept")
	gone := do(t, p, "POST", "/buckets", good, "Idempotency-Key", "gone")
	do(t, p, "DELETE", "/buckets/"+gone.id(), "")

	p = newProvider(t, mockprovider.Options{File: file})
	if got := wantStatus(t, do(t, p, "POST", "/buckets", good, "Idempotency-Key", "kept"), 200); got.id() != kept.id() {
		t.Errorf("the key made %s, want %s", got.id(), kept.id())
	}
	wantStatus(t, do(t, p, "POST", "/buckets", good, "Idempotency-Key", "gone"), 409)
	leftovers, err := filepath.Glob(file + ".*")
	if err != nil || len(leftovers) != 0 {
		t.Errorf("files left over: %v, %v", leftovers, err)
	}
}

func TestFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "buckets.json")
	if err := os.WriteFile(bad, []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{bad, filepath.Join(t.TempDir(), "no", "such", "folder"), t.TempDir()} {
		if _, err := mockprovider.New(mockprovider.Options{File: file}); err == nil {
			t.Errorf("%s was taken", file)
		}
	}
}

func TestChangeThatIsNotWrittenIsNotMade(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, mockprovider.Options{File: filepath.Join(folder, "buckets.json")})
	kept := do(t, p, "POST", "/buckets", good, "Idempotency-Key", "kept")
	before := p.Buckets()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, do(t, p, "POST", "/buckets", good, "Idempotency-Key", "another"), 500)
	wantStatus(t, do(t, p, "DELETE", "/buckets/"+kept.id(), ""), 500)
	wantStatus(t, do(t, p, "PATCH", "/buckets/"+kept.id(), `{"sizeGB":500}`), 500)
	if _, err := p.Vanish(kept.id()); err == nil {
		t.Error("Vanish went through")
	}
	if diff := cmp.Diff(before, p.Buckets()); diff != "" {
		t.Errorf("buckets (-before +after):\n%s", diff)
	}
}

func TestSetPhaseAndSize(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{})
	id := do(t, p, "POST", "/buckets", good).id()
	if found, err := p.SetPhase(id, mockprovider.Failed, "the disk is full"); !found || err != nil {
		t.Fatalf("SetPhase = %v, %v", found, err)
	}
	if found, err := p.SetSize(id, 7); !found || err != nil {
		t.Fatalf("SetSize = %v, %v", found, err)
	}
	got := do(t, p, "GET", "/buckets/"+id, "").Body
	if got["phase"] != "Failed" || got["message"] != "the disk is full" || got["sizeGB"] != 7.0 {
		t.Errorf("bucket = %v", got)
	}
	if found, _ := p.SetPhase("bucket-0", mockprovider.Failed, ""); found {
		t.Error("there is no such bucket")
	}
}

func TestCallsAreRemembered(t *testing.T) {
	t.Parallel()
	p := newProvider(t, mockprovider.Options{APIKeys: map[string]string{"token": "a"}})
	auth := []string{"Authorization", "Bearer token"}
	id := do(t, p, "POST", "/buckets", good, append(auth, "Idempotency-Key", "key-1")...).id()
	do(t, p, "GET", "/buckets/"+id, "")
	do(t, p, "DELETE", "/buckets/"+id, "", auth...)
	type call struct {
		Operation  mockprovider.Operation
		ID, Key    string
		Caller     string
		Authorized bool
		Outcome    mockprovider.Outcome
		Status     int
	}
	var got []call
	for _, c := range p.Calls() {
		got = append(got, call{c.Operation, c.ID, c.Key, c.Caller, c.Authorized, c.Outcome, c.Status})
	}
	want := []call{
		{mockprovider.Create, id, "key-1", "192.0.2.1", true, mockprovider.Created, 201},
		{mockprovider.Get, id, "", "192.0.2.1", false, mockprovider.Nothing, 401},
		{mockprovider.Delete, id, "", "192.0.2.1", true, mockprovider.Deleted, 204},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if p.ResetCalls(); len(p.Calls()) != 0 {
		t.Error("the calls were not forgotten")
	}
}

func TestLatencyIsWaitedForByTheClock(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Now())
	p := newProvider(t, mockprovider.Options{Clock: clock, Latency: time.Hour})
	answered := make(chan int, 1)
	go func() {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("POST", "/buckets", strings.NewReader(good)))
		answered <- w.Code
	}()
	for !clock.HasWaiters() {
		select {
		case status := <-answered:
			t.Fatalf("answered with %d before the time", status)
		default:
		}
	}
	clock.Step(time.Hour)
	if status := <-answered; status != 201 {
		t.Errorf("status = %d, want 201", status)
	}
}

// serve serves a handler on loopback, for what needs a connection.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}
