package main

import (
	"fmt"
	"net/http"
)

// mayAct is the fence of whatever leaves this process: it keeps a leader that was
// held up, say by a machine that froze, from acting on when another may lead. Once
// the lease was not renewed for as long as the leader may try to, the answer is an
// error, for package egress to ask before each write. Leader election ends the
// process as well, but not before the workers have gone on for a moment.
func (l *lease) mayAct() error {
	if l != nil && l.stale() {
		return fmt.Errorf("the lease %s was not renewed in time, another may lead", leaseName)
	}
	return nil
}

// fence is mayAct for the API server: no request that changes something is sent.
// What only reads goes on, as caches do.
func (l *lease) fence(next http.RoundTripper) http.RoundTripper {
	if l == nil {
		return next
	}
	return fenced{lease: l, next: next}
}

type fenced struct {
	lease *lease
	next  http.RoundTripper
}

// RoundTrip refuses a request that changes something while the lease may be another's.
func (f fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		if err := f.lease.mayAct(); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("%s %s is not sent: %w", request.Method, request.URL.Path, err)
		}
	}
	return f.next.RoundTrip(request)
}

// stale tells whether this process led and another may by now: it has begun to
// give the lease back, or lost it.
func (l *lease) stale() bool { return l.released.Load() || l.lost() }

// lost tells whether this process led and has seen another hold the lease, or has
// not renewed it for so long that another may. Of the two clocks the one that went
// further counts: that of the process stands still while its machine is suspended,
// and that on the wall may be set back.
func (l *lease) lost() bool {
	renewed := l.renewed.Load()
	if l.ended.Load() || renewed == nil {
		return l.ended.Load()
	}
	onTheWall := l.clock.Now().Round(0).Sub(renewed.Round(0))
	return max(l.clock.Since(*renewed), onTheWall) >= l.deadline
}
