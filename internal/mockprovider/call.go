package mockprovider

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Operation is one of the calls of the protocol.
type Operation string

const (
	// Create is POST /buckets.
	Create Operation = "Create"
	// Get is GET /buckets/{id}.
	Get Operation = "Get"
	// Resize is PATCH /buckets/{id}.
	Resize Operation = "Resize"
	// Delete is DELETE /buckets/{id}.
	Delete Operation = "Delete"
	// Other is everything that is not in the protocol.
	Other Operation = "Other"
)

// Outcome is what a call did to the buckets, whatever the caller got to see.
type Outcome string

const (
	// Nothing was done: the call was refused, failed, or is not done yet.
	Nothing Outcome = "Nothing"
	// Created a bucket.
	Created Outcome = "Created"
	// Replayed an idempotency key: the bucket was there.
	Replayed Outcome = "Replayed"
	// Found the bucket and read it.
	Found Outcome = "Found"
	// Absent means that there was no such bucket to read or to delete.
	Absent Outcome = "Absent"
	// Resized the bucket.
	Resized Outcome = "Resized"
	// Deleted the bucket.
	Deleted Outcome = "Deleted"
)

// Call is a call that came in.
type Call struct {
	// Operation is what was asked for.
	Operation Operation `json:"operation"`
	// ID is the bucket that was asked for or made; empty where there is none.
	ID string `json:"id,omitempty"`
	// Key is the idempotency key, if the call had one.
	Key string `json:"key,omitempty"`
	// Path is the URL's path.
	Path string `json:"path"`
	// Caller is the address, without the port, that it came from.
	Caller string `json:"caller"`
	// Account is whose call it was.
	Account string `json:"account,omitempty"`
	// Authorized is whether the call had a right to be made.
	Authorized bool `json:"authorized"`
	// Outcome is what was done.
	Outcome Outcome `json:"outcome"`
	// Faulted is whether a fault was made of it.
	Faulted bool `json:"faulted,omitempty"`
	// Status is the HTTP status that the caller was sent; 0 when the call is
	// not answered yet, or never was.
	Status int `json:"status,omitempty"`
	// At is when it came in.
	At time.Time `json:"at"`
}

// maxCalls bounds the memory of a provider that runs for long.
const maxCalls = 100_000

// callLog is the latest calls, in order, and how many there were of each operation.
type callLog struct {
	mu     sync.Mutex
	calls  []*Call
	counts map[Operation]int
}

func (l *callLog) add(call Call) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) == maxCalls {
		l.calls = slices.Delete(l.calls, 0, maxCalls/10)
	}
	if l.counts == nil {
		l.counts = map[Operation]int{}
	}
	l.counts[call.Operation]++
	l.calls = append(l.calls, &call)
	return &call
}

func (l *callLog) change(call *Call, change func(*Call)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(call)
}

func (l *callLog) list() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := make([]Call, len(l.calls))
	for i, call := range l.calls {
		calls[i] = *call
	}
	return calls
}

func (l *callLog) count() map[Operation]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[Operation]int, len(l.counts))
	maps.Copy(counts, l.counts)
	return counts
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.counts = nil, nil
}
