package egress

import (
	"net"
	"sync/atomic"
)

// Conn is a connection that sends nothing once its fence is shut, so that a leader
// that was paused does not go on where it was, on a connection that is open. It
// has none of the shortcuts of a *net.TCPConn that get around Write.
type Conn struct {
	net.Conn
	fence Fence
	sent  atomic.Int64
}

// Write sends, unless the fence is shut: then the error is an *Error, and nothing
// of b was sent. Closing such a connection is up to its user.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.fence.check(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// Sent is how many bytes the operating system has taken so far. Where it has
// taken none of a call's, the call has certainly done nothing.
func (c *Conn) Sent() int64 { return c.sent.Load() }

// Under is the *Conn at the bottom of a connection that was made by a Dialer, or
// nil.
func Under(conn net.Conn) *Conn {
	for conn != nil {
		if c, ok := conn.(*Conn); ok {
			return c
		}
		over, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = over.NetConn()
	}
	return nil
}
