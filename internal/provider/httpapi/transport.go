package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	// connectTimeout and handshakeTimeout are shorter than a call's, so that a
	// provider that is not there is told from one that does not answer: the
	// first certainly did nothing.
	connectTimeout   = 4 * time.Second
	handshakeTimeout = 4 * time.Second

	// idleTimeout is shorter than that of common servers, whose closing of an
	// idle connection would cross with a call.
	idleTimeout = 30 * time.Second

	maxHeaderBytes = 16 << 10
)

type control func(ctx context.Context, network, address string, c syscall.RawConn) error

// transport is shared by all Clients, so that connections are kept. It asks no
// proxy, which would resolve names behind the guard's back; does not unpack
// answers, which may be bombs; and speaks HTTP/1.1 only, as HTTP/2 has nothing
// to give to one small call at a time.
func (f *Factory) transport(control control) *http.Transport {
	dialer := &net.Dialer{
		Timeout:        connectTimeout,
		KeepAlive:      idleTimeout,
		Resolver:       f.Resolver,
		ControlContext: control,
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.RootCAs},
		TLSHandshakeTimeout:    handshakeTimeout,
		DisableCompression:     true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              protocols,
	}
}
