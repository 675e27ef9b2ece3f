package httpapi

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"avalonhosting.example/bucketoperator/internal/egress"
)

// progress is how far a call got. It is written from the transport's goroutines.
type progress struct {
	wrote atomic.Bool

	mu    sync.Mutex
	conns []usedConn
}

// usedConn is a connection that the call was given, with how much others had sent on it.
type usedConn struct {
	conn   *egress.Conn // nil if it is not one of package egress
	before int64
}

// trace notes the progress of a request made with the context.
func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			used := usedConn{conn: egress.Under(info.Conn)}
			if used.conn != nil {
				used.before = used.conn.Sent()
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.conns = append(p.conns, used)
		},
		// Called before anything is sent, as headers are buffered: if it was not
		// called, the provider has certainly got nothing.
		WroteHeaderField: func(string, []string) { p.wrote.Store(true) },
		WroteHeaders:     func() { p.wrote.Store(true) },
	})
}

// sent tells whether the provider may have got anything of a call that has ended.
// What was written to a connection that took none of it, as it was closed or
// fenced, did not get there.
func (p *progress) sent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, used := range p.conns {
		if used.conn == nil || used.conn.Sent() > used.before {
			return p.wrote.Load()
		}
	}
	return len(p.conns) == 0 && p.wrote.Load()
}
