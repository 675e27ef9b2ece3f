package mockprovider

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault is one way to fail. With nothing but a Latency the call is only slow.
// Otherwise the caller does not get the true answer, but Drop, Hang, or an
// answer made of Status and the rest.
type Fault struct {
	// Latency is waited for first.
	Latency time.Duration
	// AfterWork does the call's work first, and then fails: a lost answer.
	AfterWork bool
	// Drop closes the connection without an answer.
	Drop bool
	// Hang keeps the caller waiting until it leaves.
	Hang bool
	// Status answers with this HTTP status; 0 means 200 if Body, BodySize or
	// Empty asks for an answer.
	Status int
	// RetryAfter is the answer's header of that name. Empty means none.
	RetryAfter string
	// Location is the answer's header of that name. Empty means none.
	Location string
	// ContentType is the answer's; empty means application/json.
	ContentType string
	// Body is the answer's.
	Body string
	// BodySize makes the answer's body this many bytes of JSON.
	BodySize int
	// Empty makes the answer's body empty.
	Empty bool
}

// answers is whether the fault makes up an answer of its own.
func (f Fault) answers() bool {
	return f.Status != 0 || f.Body != "" || f.BodySize != 0 || f.Empty
}

// Rule says which calls fail, and how. Empty fields match every call.
type Rule struct {
	// Operation is the call that fails.
	Operation Operation
	// Path is a part of the URL's path.
	Path string
	// Key is a part of the idempotency key.
	Key string
	// From is the first of the matching calls that fails, counted from 1;
	// 0 means 1.
	From int
	// Times is how many fail from there on; 0 means all.
	Times int
	// Fault is how they fail.
	Fault Fault
}

// Faults are the rules in force. The first that hits a call decides; every
// rule counts the calls that it matches.
type Faults struct {
	mu    sync.Mutex
	rules []*ActiveRule
}

// ActiveRule is a rule in force.
type ActiveRule struct {
	faults  *Faults
	rule    Rule
	matches int
	hits    int
}

// Add puts a rule in force, after those that are.
func (f *Faults) Add(rule Rule) *ActiveRule {
	f.mu.Lock()
	defer f.mu.Unlock()
	active := &ActiveRule{faults: f, rule: rule}
	f.rules = append(f.rules, active)
	return active
}

// Clear removes all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Remove puts the rule out of force.
func (r *ActiveRule) Remove() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.rules = slices.DeleteFunc(r.faults.rules, func(other *ActiveRule) bool { return other == r })
}

// Hits is how many calls the rule has made fail.
func (r *ActiveRule) Hits() int {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return r.hits
}

// next is the fault that this call is to suffer, if any.
func (f *Faults) next(operation Operation, path, key string) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var hit *ActiveRule
	for _, active := range f.rules {
		if active.takes(operation, path, key) && hit == nil {
			hit = active
		}
	}
	if hit == nil {
		return Fault{}, false
	}
	hit.hits++
	return hit.rule.Fault, true
}

// takes counts the call if it matches, and tells whether it is to fail.
func (r *ActiveRule) takes(operation Operation, path, key string) bool {
	rule := r.rule
	if (rule.Operation != "" && rule.Operation != operation) ||
		!strings.Contains(path, rule.Path) || !strings.Contains(key, rule.Key) {
		return false
	}
	r.matches++
	from := max(rule.From, 1)
	return r.matches >= from && (rule.Times == 0 || r.matches < from+rule.Times)
}
