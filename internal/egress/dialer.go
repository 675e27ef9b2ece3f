package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress/guard"
)

const (
	// connectTimeout and handshakeTimeout are shorter than a call's, so that a
	// server that is not there is told from one that does not answer: the first
	// certainly did nothing.
	connectTimeout   = 4 * time.Second
	handshakeTimeout = 4 * time.Second

	keepAlive = 15 * time.Second
)

// Dialer makes the TCP connections of every protocol. The zero value is the
// strictest: it connects to nothing that a tenant must not reach.
//
// Give its DialContext, or DialTLSContext, to whatever speaks the protocol:
// http.Transport, the connectors of SQL drivers, clients of Redis. A client of DNS
// gets it by way of net.Resolver or its like, and has to use DNS over TCP
// (RFC 7766), which servers that take updates speak: a datagram is not looked at
// here, so other networks than TCP are refused.
type Dialer struct {
	// Trusted is that whoever runs the operator chose the address, so that it may be any.
	Trusted bool
	// AllowLoopback lets untrusted addresses be loopback ones: for development.
	AllowLoopback bool
	// Fence is asked before each connection and before each write; nil is none.
	Fence Fence
	// Roots are who may sign a server's certificate; nil means what Go takes for the
	// system's at the start of the process.
	Roots *Roots
	// Resolver looks up names; nil means the system's.
	Resolver *net.Resolver
	// ConnectTimeout and HandshakeTimeout bound how long each may take; 0 means 4 s.
	ConnectTimeout, HandshakeTimeout time.Duration
}

// DialContext connects to a TCP address. The error is an *Error if the fence is
// shut, or if the address must not be connected to. The connection is a *Conn.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if err := d.Fence.check(); err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		Timeout:   cmp.Or(d.ConnectTimeout, connectTimeout),
		KeepAlive: keepAlive,
		Resolver:  d.Resolver,
	}
	if d.Trusted {
		dialer.ControlContext = guard.TCP
	} else {
		dialer.ControlContext = guard.Control(d.AllowLoopback)
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if refused, ok := errors.AsType[*guard.RefusedError](err); ok {
		return nil, &Error{Class: AddressRefused, Err: refused}
	}
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, fence: d.Fence}, nil
}

// HandshakeError is why no TLS connection could be agreed on.
type HandshakeError struct{ Err error }

// Error says what the TLS library says.
func (e *HandshakeError) Error() string { return "TLS handshake: " + e.Err.Error() }

// Unwrap is what the TLS library says.
func (e *HandshakeError) Unwrap() error { return e.Err }

// DialTLSContext connects as DialContext does, and then agrees on TLS 1.2 or
// later with a server whose certificate is for the host in address. The error is
// a *HandshakeError if that fails. The connection is a *tls.Conn over a *Conn.
func (d *Dialer) DialTLSContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.HandshakeTimeout, handshakeTimeout))
	defer cancel()
	secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: d.Roots.Pool()})
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
			d.Roots.Doubt()
		}
		return nil, &HandshakeError{Err: err}
	}
	return secured, nil
}
