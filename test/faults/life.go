package faults

import (
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// Life is one incarnation of the operator, and how it is to be run. None of its
// requests goes on once it is dead.
type Life struct {
	// Log takes what the operator logs.
	Log logr.Logger
	// Resync is how long a state may go without a comparison with the outside; 0
	// means that there is none but for an event.
	Resync time.Duration
	// CallTimeout bounds a call to the outside; 0 means the usual bound.
	CallTimeout time.Duration
	// Backoff bounds the delays between two tries after a failure, Poll those
	// between two looks at something in the making.
	Backoff, Poll Bounds

	gate  *Gate
	epoch int
	once  sync.Once
	dead  chan struct{}

	mu   sync.Mutex
	open map[net.Conn]bool // TCP connections that are cut when it dies
}

// Bounds are the shortest and the longest delay.
type Bounds struct{ Min, Max time.Duration }

// Config is how the operator reaches the API server, in JSON so that the harness
// can read all of it. Its transport has to be wrapped by API.
func (l *Life) Config() *rest.Config {
	config := testplane.Config()
	config.ContentType = runtime.ContentTypeJSON
	return config
}

// die ends the incarnation: none of its requests is forwarded from here on.
func (l *Life) die() {
	l.once.Do(func() {
		close(l.dead)
		l.mu.Lock()
		defer l.mu.Unlock()
		for connection := range l.open {
			_ = connection.Close()
		}
	})
}

// keep has a connection cut when the incarnation dies, as the death of a process
// does; false if it is dead already.
func (l *Life) keep(connection net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDead() {
		return false
	}
	l.open[connection] = true
	return true
}

// release lets a connection outlive the incarnation.
func (l *Life) release(connection net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, connection)
}

func (l *Life) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// API stands between the incarnation and the API server.
func (l *Life) API(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		body, err := readBody(request)
		if err != nil {
			return nil, err
		}
		kind, effect := classifyAPI(request, body)
		if l.isDead() {
			if kind == classEvent {
				// The recorder would try again for a minute after its process is
				// gone, in this one.
				return answer(request, effect, http.StatusForbidden, "Forbidden"), nil
			}
			return nil, errDead
		}
		switch kind {
		case classOther:
			return next.RoundTrip(withBody(request, body))
		case classWatch:
			return l.gate.stale.watch(request, next, func(resource string) { l.gate.told(l, resource) })
		case classEvent:
			l.gate.mu.Lock()
			l.gate.posted = append(l.gate.posted, body)
			l.gate.mu.Unlock()
			return next.RoundTrip(withBody(request, body))
		case classRead, classEffect:
		}
		request.Header.Set("Accept", readableOf(request.Header.Get("Accept")))
		return l.pass(Call{Effect: effect, Read: kind == classRead}, request, body, next)
	})
}

// HTTP stands between the incarnation and an outside that speaks HTTP; name
// reads its requests.
func (l *Life) HTTP(name func(*http.Request, []byte) Call) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			body, err := readBody(request)
			if err != nil {
				return nil, err
			}
			if l.isDead() {
				return nil, errDead
			}
			call := name(request, body)
			call.Effect.Port = HTTP
			return l.pass(call, request, body, next)
		})
	}
}

// pass numbers and records an HTTP request and carries out what the plan has for it.
func (l *Life) pass(call Call, request *http.Request, body []byte, next http.RoundTripper) (*http.Response, error) {
	event, fault := l.gate.enter(l, call, request.URL.Path, body)
	defer l.gate.leave(event)
	effect := call.Effect
	forward := func() (*http.Response, error) { return l.gate.forward(event, request, body, next) }
	switch fault {
	case CrashBefore:
		l.die()
		return nil, errDead
	case CrashAfter:
		_, _ = forward()
		l.die()
		return nil, errDead
	case Zombie, ZombieRecreate:
		l.gate.parkRequest(event, request, body, next)
		l.die()
		return nil, errDead
	case Failed:
		return answer(request, effect, http.StatusInternalServerError, "InternalError"), nil
	case Conflict:
		return answer(request, effect, http.StatusConflict, "Conflict"), nil
	case Throttled:
		return answer(request, effect, http.StatusTooManyRequests, "TooManyRequests"), nil
	case Lost, Busy:
		if _, err := forward(); err != nil {
			return nil, err
		}
		return nil, brokenConnection()
	case Garbage:
		if _, err := forward(); err != nil {
			return nil, err
		}
		return response(request, http.StatusOK, []byte(`{"id": ["`)), nil
	case Duplicated:
		first, err := forward()
		l.gate.repeat(event, request, body, next)
		return first, err
	case Retried:
		if _, err := forward(); err != nil {
			return nil, err
		}
		return l.gate.again(event, request, body, next)
	case Hang:
		most := (<-chan time.Time)(nil)
		if effect.Port == API {
			most = time.After(apiHang)
		}
		return nil, hang(request.Context(), most, l.dead)
	case Outage:
		return nil, noConnection()
	case None:
	}
	return forward()
}
