package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/internal/egress/guard"
)

// peer listens on loopback, and tells what the first connection sent until it ended.
func peer(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	listener := listen(t)
	all := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		sent, _ := io.ReadAll(conn)
		all <- string(sent)
	}()
	return listener.Addr().String(), all
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// gate is a fence that can be shut.
type gate struct{ shut atomic.Bool }

func (g *gate) fence() error {
	if g.shut.Load() {
		return errors.New("another may lead")
	}
	return nil
}

func TestNothingIsWrittenToAnOpenConnectionBehindAShutFence(t *testing.T) {
	t.Parallel()
	address, got := peer(t)
	gate := &gate{}
	dialer := &Dialer{Trusted: true, Fence: gate.fence}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "before"); err != nil {
		t.Fatal(err)
	}
	gate.shut.Store(true)
	for name, write := range map[string]func() error{
		"Write":   func() error { _, err := conn.Write([]byte("after")); return err },
		"io.Copy": func() error { _, err := io.Copy(conn, strings.NewReader("after")); return err },
		"net.Buffers": func() error {
			buffers := net.Buffers{[]byte("af"), []byte("ter")}
			_, err := buffers.WriteTo(conn)
			return err
		},
	} {
		if err := write(); !IsFenced(err) {
			t.Errorf("%s = %v, want the fence's refusal", name, err)
		}
	}
	if _, err := dialer.DialContext(t.Context(), "tcp", address); !IsFenced(err) {
		t.Errorf("DialContext = %v, want the fence's refusal", err)
	}
	if sent := Under(conn).Sent(); sent != int64(len("before")) {
		t.Errorf("%d bytes count as sent", sent)
	}
	_ = conn.Close()
	if all := <-got; all != "before" {
		t.Errorf("the peer got %q", all)
	}
}

func TestUntrustedAddressesAreLookedAtOnceResolved(t *testing.T) {
	t.Parallel()
	address, _ := peer(t)
	_, err := (&Dialer{}).DialContext(t.Context(), "tcp", address)
	if e := refusal(t, err); e.Class != AddressRefused || !strings.HasPrefix(e.Error(), "leads to 127.0.0.1") {
		t.Errorf("DialContext = %#v, want the guard's refusal", e)
	}
	if _, ok := errors.AsType[*guard.RefusedError](err); !ok {
		t.Error("the guard's error is hidden")
	}
	for name, dialer := range map[string]*Dialer{"trusted": {Trusted: true}, "allowed": {AllowLoopback: true}} {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = conn.Close()
	}
}

func TestOnlyTCPIsDialled(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		if _, err := (&Dialer{Trusted: trusted}).DialContext(t.Context(), "udp", "192.0.2.1:53"); err == nil {
			t.Errorf("a datagram's connection was made, trusted %t", trusted)
		}
	}
}

func TestAHandshakeHasItsTime(t *testing.T) {
	t.Parallel()
	address, _ := peer(t) // says nothing
	dialer := &Dialer{Trusted: true, HandshakeTimeout: 10 * time.Millisecond}
	_, err := dialer.DialTLSContext(t.Context(), "tcp", address)
	if _, ok := errors.AsType[*HandshakeError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("DialTLSContext = %v, want a handshake that took too long", err)
	}
}

func TestAFencedHandshakeSaysSo(t *testing.T) {
	t.Parallel()
	address, got := peer(t)
	asked := 0
	dialer := &Dialer{Trusted: true, Fence: func() error {
		if asked++; asked > 1 { // the first is for the connection
			return errors.New("another may lead")
		}
		return nil
	}}
	if _, err := dialer.DialTLSContext(t.Context(), "tcp", address); !IsFenced(err) {
		t.Errorf("DialTLSContext = %v, want the fence's refusal", err)
	}
	if all := <-got; all != "" {
		t.Errorf("the peer got %q", all)
	}
}

func TestWhatIsUnderAConnection(t *testing.T) {
	t.Parallel()
	bottom := &Conn{}
	if Under(tls.Client(bottom, nil)) != bottom || Under(bottom) != bottom {
		t.Error("it is not found")
	}
	if Under(&net.TCPConn{}) != nil || Under(nil) != nil {
		t.Error("something is found under another's connection")
	}
}
