package mockprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Admin is the handler that controls the Provider. It asks for no token, so it
// belongs on a listener that only whoever runs the Provider can reach:
//
//	POST   /_mock/faults               put a rule in force
//	DELETE /_mock/faults               remove all rules
//	GET    /_mock/buckets              the buckets
//	DELETE /_mock/buckets/{id}         make a bucket vanish behind the protocol's back
//	PUT    /_mock/buckets/{id}/phase   hold a bucket in a phase: {"phase", "message"}
//	GET    /_mock/calls                how many calls there were, and which
//	DELETE /_mock/calls                forget them
func (p *Provider) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /_mock/faults", p.adminAddFault)
	mux.HandleFunc("DELETE /_mock/faults", func(w http.ResponseWriter, _ *http.Request) {
		p.faults.Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_mock/buckets", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, p.Buckets())
	})
	mux.HandleFunc("DELETE /_mock/buckets/{id}", func(w http.ResponseWriter, r *http.Request) {
		found, err := p.Vanish(r.PathValue("id"))
		writeFound(w, found, err)
	})
	mux.HandleFunc("PUT /_mock/buckets/{id}/phase", p.adminSetPhase)
	mux.HandleFunc("GET /_mock/calls", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, callsBody{Counts: p.calls.count(), Calls: p.Calls()})
	})
	mux.HandleFunc("DELETE /_mock/calls", func(w http.ResponseWriter, _ *http.Request) {
		p.ResetCalls()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

type callsBody struct {
	Counts map[Operation]int `json:"counts"`
	Calls  []Call            `json:"calls"`
}

// ruleBody is a Rule as the admin handler takes it.
type ruleBody struct {
	Operation Operation `json:"operation"`
	Path      string    `json:"path"`
	Key       string    `json:"key"`
	From      int       `json:"from"`
	Times     int       `json:"times"`

	Latency     string `json:"latency"` // such as 2s
	AfterWork   bool   `json:"afterWork"`
	Drop        bool   `json:"drop"`
	Hang        bool   `json:"hang"`
	Status      int    `json:"status"`
	RetryAfter  string `json:"retryAfter"`
	Location    string `json:"location"`
	ContentType string `json:"contentType"`
	Body        string `json:"body"`
	BodySize    int    `json:"bodySize"`
	Empty       bool   `json:"empty"`
}

// rule checks what it can: a rule with a slip in it would never hit, and whoever
// wrote it would wonder.
func (b ruleBody) rule() (Rule, error) {
	switch b.Operation {
	case "", Create, Get, Resize, Delete, Other:
	default:
		return Rule{}, fmt.Errorf("operation %q is not one of Create, Get, Resize, Delete, Other", b.Operation)
	}
	if b.Status != 0 && (b.Status < 200 || b.Status > 599) {
		return Rule{}, fmt.Errorf("status %d is not between 200 and 599", b.Status)
	}
	var latency time.Duration
	if b.Latency != "" {
		var err error
		if latency, err = time.ParseDuration(b.Latency); err != nil {
			return Rule{}, fmt.Errorf("latency %q is not a duration such as 2s", b.Latency)
		}
	}
	rule := Rule{
		Operation: b.Operation, Path: b.Path, Key: b.Key, From: b.From, Times: b.Times,
		Fault: Fault{
			Latency: latency, AfterWork: b.AfterWork, Drop: b.Drop, Hang: b.Hang, Status: b.Status,
			RetryAfter: b.RetryAfter, Location: b.Location, ContentType: b.ContentType,
			Body: b.Body, BodySize: b.BodySize, Empty: b.Empty,
		},
	}
	if f := rule.Fault; latency == 0 && !f.Drop && !f.Hang && !f.answers() {
		return Rule{}, fmt.Errorf("the rule does nothing: give it one of latency, drop, hang, status, body, bodySize, empty")
	}
	return rule, nil
}

func (p *Provider) adminAddFault(w http.ResponseWriter, r *http.Request) {
	var body ruleBody
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody{err.Error()})
		return
	}
	rule, err := body.rule()
	if err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody{err.Error()})
		return
	}
	p.faults.Add(rule)
	w.WriteHeader(http.StatusNoContent)
}

func (p *Provider) adminSetPhase(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Phase   Phase  `json:"phase"`
		Message string `json:"message"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody{err.Error()})
		return
	}
	switch body.Phase {
	case "", Provisioning, Active, Failed:
	default:
		writeJSON(w, http.StatusBadRequest, errorBody{"phase is one of Provisioning, Active, Failed, or empty to let the bucket's age decide"})
		return
	}
	found, err := p.SetPhase(r.PathValue("id"), body.Phase, body.Message)
	writeFound(w, found, err)
}

func writeFound(w http.ResponseWriter, found bool, err error) {
	switch {
	case err != nil:
		writeJSON(w, http.StatusInternalServerError, errorBody{err.Error()})
	case !found:
		writeJSON(w, http.StatusNotFound, errorBody{"there is no such bucket"})
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}
