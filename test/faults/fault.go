package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"syscall"
	"time"
)

// Fault is a way in which a request can go wrong.
type Fault string

const (
	// None means: nothing goes wrong.
	None Fault = "none"
	// CrashBefore means: the operator dies before the request leaves it.
	CrashBefore Fault = "crash-before"
	// CrashAfter means: the operator dies when the request was carried out, before it learns of it.
	CrashAfter Fault = "crash-after"
	// Failed means: the request is answered with an internal error and not carried out.
	Failed Fault = "error"
	// Lost means: the request is carried out, the answer is lost.
	Lost Fault = "lost"
	// Conflict means: the API server answers a write with a conflict.
	Conflict Fault = "conflict"
	// Throttled means: the answer is 429 with a Retry-After of a second.
	Throttled Fault = "throttled"
	// Duplicated means: the request arrives twice, the caller gets the first answer.
	Duplicated Fault = "duplicated"
	// Retried means: the request arrives twice, the caller gets the second answer.
	Retried Fault = "retried"
	// Hang means: the request is not answered until the caller gives up.
	Hang Fault = "hang"
	// Garbage means: the outside carries the request out and answers with nonsense.
	Garbage Fault = "garbage"
	// Outage means: the outside cannot be reached from here on, for several attempts.
	Outage Fault = "outage"
	// Busy means: the outside carries the request out, the answer is lost, and the
	// same request again meets a conflict a few times, as if it were still at work.
	Busy Fault = "busy"
	// Zombie means: the operator is deposed; the request leaves it only after its
	// successor has settled.
	Zombie Fault = "zombie"
	// ZombieRecreate means: the same, after the user has deleted and recreated the object.
	ZombieRecreate Fault = "zombie-recreate"
)

// crashes tells whether the fault ends the incarnation.
func (f Fault) crashes() bool { return f == CrashBefore || f == CrashAfter }

// parks tells whether the request is kept for later.
func (f Fault) parks() bool { return f == Zombie || f == ZombieRecreate }

// faultsOf are the faults that make sense for a request.
func faultsOf(effect Effect, read bool) []Fault {
	switch {
	case effect.Port == API && read:
		return []Fault{Failed, Lost, Hang}
	case effect.Port == API:
		return []Fault{CrashBefore, CrashAfter, Failed, Lost, Conflict, Throttled, Duplicated, Retried, Hang, Zombie, ZombieRecreate}
	case effect.Port == HTTP && read:
		return []Fault{Failed, Lost, Hang, Throttled, Garbage, Outage}
	case effect.Port == HTTP:
		faults := []Fault{CrashBefore, CrashAfter, Failed, Lost, Throttled, Duplicated, Retried, Hang, Garbage, Outage, Zombie, ZombieRecreate}
		if effect.Verb == http.MethodPost {
			faults = append(faults, Busy)
		}
		return faults
	case read:
		return []Fault{Lost, Hang, Garbage, Outage}
	default:
		// What stands in a TCP connection cannot make up an answer, and a protocol
		// with a state cannot be sent twice.
		return []Fault{CrashBefore, CrashAfter, Lost, Hang, Garbage, Outage, Zombie, ZombieRecreate}
	}
}

// length is how many requests in a row go wrong.
func (f Fault) length() int {
	switch f {
	case Outage, Busy:
		return 3
	default:
		return 1
	}
}

// apiHang is how long a request to the API server hangs: its caller never gives up.
const apiHang = 150 * time.Millisecond

var errDead = errors.New("this incarnation of the operator is dead")

// brokenConnection is what a caller sees whose answer was lost.
func brokenConnection() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// noConnection is what a caller sees that cannot reach the outside.
func noConnection() error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// hang waits until the caller gives up, or for most when it never does. The
// caller believes that the request was sent.
func hang(ctx context.Context, most <-chan time.Time, dead <-chan struct{}) error {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-most:
		return &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case <-dead:
		return errDead
	}
}

// answer makes up an answer of the API server or the provider.
func answer(request *http.Request, effect Effect, status int, reason string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"made up by the fault matrix","reason":%q,"code":%d}`, reason, status)
	if effect.Port != API {
		body = `{"error":"made up by the fault matrix"}`
	}
	response := response(request, status, []byte(body))
	if status == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1")
	}
	return response
}

func response(request *http.Request, status int, body []byte) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}
}
