package httpapi

import (
	"net/http"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress"
)

const (
	// idleTimeout is shorter than that of any server that is known to close idle
	// connections, the quickest of which do so after 2 seconds: a call that crosses
	// with the closing is one of which nobody knows whether it was done. It is enough
	// for the calls of a burst, and the next burst can afford a handshake.
	idleTimeout = 1500 * time.Millisecond

	maxHeaderBytes = 16 << 10
)

// transport is shared by all Clients, so that connections are kept. It asks no
// proxy, which would resolve names behind the guard's back; does not unpack
// answers, which may be bombs; and speaks HTTP/1.1 only, as HTTP/2 has nothing
// to give to one small call at a time.
func transport(dialer egress.Dialer) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		DialTLSContext:         dialer.DialTLSContext,
		DisableCompression:     true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              protocols,
	}
}
