package httpapi

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync/atomic"
)

// progress is how far a call got. It is written from the transport's goroutines.
type progress struct {
	handshakeFailed atomic.Bool
	sent            atomic.Bool
}

// trace notes the progress of a request made with the context.
func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { p.handshakeFailed.Store(err != nil) },
		// Called before anything is written, as headers are buffered: if it was
		// not called, the provider has certainly got nothing.
		WroteHeaderField: func(string, []string) { p.sent.Store(true) },
		WroteHeaders:     func() { p.sent.Store(true) },
	})
}
