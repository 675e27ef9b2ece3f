package mockprovider

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds what is read of a request.
const maxBody = 64 << 10

// answer is what a call is answered with. A nil body means none.
type answer struct {
	status  int
	body    any
	outcome Outcome
	id      string
}

func refusal(status int, message string) answer {
	return answer{status: status, body: errorBody{message}, outcome: Nothing}
}

type errorBody struct {
	Error string `json:"error"`
}

// ServeHTTP serves the protocol.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

func (p *Provider) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("POST /buckets", p.call(Create, p.create))
	mux.Handle("GET /buckets/{id}", p.call(Get, p.get))
	mux.Handle("DELETE /buckets/{id}", p.call(Delete, p.delete))
	if !p.options.Minimal {
		mux.Handle("PATCH /buckets/{id}", p.call(Resize, p.resize))
	} else {
		mux.Handle("PATCH /buckets/{id}", p.call(Resize, func(*http.Request, string, []byte) answer {
			return refusal(http.StatusMethodNotAllowed, "buckets cannot be resized")
		}))
	}
	mux.Handle("/", p.call(Other, func(*http.Request, string, []byte) answer {
		return refusal(http.StatusNotFound, "there is nothing here; the protocol is POST /buckets and GET, PATCH, DELETE /buckets/{id}")
	}))
	return mux
}

// call is the handler of an operation: it logs, waits, fails on demand, checks
// the token, does the work, and answers.
func (p *Provider) call(operation Operation, work func(r *http.Request, account string, body []byte) answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		// The body is read first: only then does net/http notice that the
		// caller has left, which ends a Hang.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		account, authorized := p.authorize(r)
		fault, faulted := p.faults.next(operation, r.URL.Path, key)
		caller, _, _ := net.SplitHostPort(r.RemoteAddr) // of the listener's making
		call := p.calls.add(Call{
			Operation: operation, ID: r.PathValue("id"), Key: key, Path: r.URL.Path, Caller: caller, Account: account,
			Authorized: authorized, Outcome: Nothing, Faulted: faulted, At: p.clock.Now(),
		})
		p.wait(r, p.options.Latency+fault.Latency)
		if faulted && !fault.AfterWork && p.fail(w, r, call, fault) {
			return
		}
		var a answer
		switch {
		case err != nil:
			a = refusal(http.StatusRequestEntityTooLarge, "the body is too large")
		case !authorized:
			a = refusal(http.StatusUnauthorized, "the API key is missing or wrong")
			w.Header().Set("WWW-Authenticate", "Bearer")
		default:
			a = work(r, account, body)
		}
		p.calls.change(call, func(call *Call) {
			call.Outcome = a.outcome
			if a.id != "" {
				call.ID = a.id
			}
		})
		if faulted && fault.AfterWork && p.fail(w, r, call, fault) {
			return
		}
		p.calls.change(call, func(call *Call) { call.Status = a.status })
		writeJSON(w, a.status, a.body)
	})
}

// wait waits for d. If the caller leaves first, that is the end of the call.
func (p *Provider) wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := p.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-r.Context().Done():
		abort()
	}
}

// abort is net/http's way to close the connection without an answer.
func abort() { panic(http.ErrAbortHandler) }

// fail makes the fault, and tells whether that was the end of the call.
func (p *Provider) fail(w http.ResponseWriter, r *http.Request, call *Call, fault Fault) bool {
	switch {
	case fault.Hang:
		<-r.Context().Done()
		abort()
	case fault.Drop:
		abort()
	case fault.answers():
		status := fault.Status
		if status == 0 {
			status = http.StatusOK
		}
		p.calls.change(call, func(call *Call) { call.Status = status })
		writeFault(w, status, fault)
	default:
		return false
	}
	return true
}

func writeFault(w http.ResponseWriter, status int, fault Fault) {
	for name, value := range map[string]string{
		"Retry-After": fault.RetryAfter, "Location": fault.Location, "Content-Type": fault.ContentType,
	} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	if fault.ContentType == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	body := fault.Body
	if fault.BodySize > 0 {
		const prefix, suffix = `{"padding":"`, `"}`
		body = prefix + strings.Repeat("x", max(0, fault.BodySize-len(prefix)-len(suffix))) + suffix
	}
	// The caller may have left; there is nobody to tell.
	_, _ = io.WriteString(w, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The caller may have left; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// authorize finds whose call it is.
func (p *Provider) authorize(r *http.Request) (account string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.apiKeys) == 0 {
		return "", true
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		return "", false
	}
	for key, owner := range p.apiKeys {
		if subtle.ConstantTimeCompare([]byte(key), []byte(token)) == 1 {
			account, ok = owner, true
		}
	}
	return account, ok
}
