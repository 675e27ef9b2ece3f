package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// Protocol is as much of a protocol over TCP as the harness has to know to cut
// a real driver's requests. The client speaks first, and each request has an answer.
type Protocol struct {
	// Port is what the effects are named after.
	Port Port
	// Request tells how long the request is that begins what was sent, and what it
	// is about; 0 while it is not whole. Without a verb it is no effect, as a
	// greeting is: it goes on without a record.
	Request func(sent []byte) (length int, call Call)
	// Answer tells how long the answer is that begins what came back, and whether
	// it says that nothing was done; 0 while it is not whole.
	Answer func(got []byte) (length int, refused bool)
}

// TCP stands between the incarnation and an outside at an address, and returns
// the address that the operator is to be given in its place.
func (l *Life) TCP(ctx context.Context, protocol Protocol, target string) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening in place of %s: %w", target, err)
	}
	p := &proxy{life: l, protocol: protocol, target: target, listener: listener, open: map[net.Conn]bool{}}
	l.mu.Lock()
	l.proxies = append(l.proxies, p)
	l.mu.Unlock()
	go p.serve(ctx)
	return listener.Addr().String(), nil
}

// proxy stands in the TCP connections of one incarnation.
type proxy struct {
	life     *Life
	protocol Protocol
	target   string
	listener net.Listener

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
}

// close cuts all connections, as the death of a process does.
func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	_ = p.listener.Close()
	for connection := range p.open {
		_ = connection.Close()
	}
}

// keep has a connection closed along with the incarnation.
func (p *proxy) keep(connection net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open[connection] = true
	}
	return !p.closed
}

// release lets a connection outlive the incarnation.
func (p *proxy) release(connection net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, connection)
}

func (p *proxy) serve(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
		if err != nil || !p.keep(client) || !p.keep(server) {
			reset(client)
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		go (&exchange{proxy: p, client: client, server: server}).run()
	}
}

// exchange is one connection of a client.
type exchange struct {
	proxy          *proxy
	client, server net.Conn
	sent, got      []byte // what was read and not used yet
}

// run passes requests on, one after the other, until one side has enough.
func (x *exchange) run() {
	defer func() {
		for _, connection := range []net.Conn{x.client, x.server} {
			x.proxy.release(connection)
		}
		_ = x.client.Close()
	}()
	for {
		var call Call
		request, err := whole(x.client, &x.sent, func(sent []byte) (length int) {
			length, call = x.proxy.protocol.Request(sent)
			return length
		})
		if err != nil {
			_ = x.server.Close()
			return
		}
		if call.Effect.Verb == "" {
			err = x.ask(nil, request)
		} else {
			call.Effect.Port = x.proxy.protocol.Port
			err = x.pass(call, request)
		}
		if err != nil {
			if !errors.Is(err, errParked) {
				_ = x.server.Close()
			}
			return
		}
	}
}

// errParked means: the connection to the server waits for its turn.
var errParked = errors.New("the request is kept for later")

// errCut means: the connection is over, as planned.
var errCut = errors.New("the connection was cut")

// pass numbers and records a request and carries out what the plan has for it.
// An error ends the connection.
func (x *exchange) pass(call Call, request []byte) error {
	gate, life := x.proxy.life.gate, x.proxy.life
	if life.isDead() {
		return errDead
	}
	event, fault := gate.enter(life, call, "", request)
	defer gate.leave(event)
	switch fault {
	case CrashBefore:
		life.die()
		return errDead
	case Zombie, ZombieRecreate:
		x.proxy.release(x.server)
		gate.park(func() {
			extra := gate.extra(event)
			defer gate.leave(extra)
			_, _ = x.exchanged(extra, request)
			_ = x.server.Close()
		})
		life.die()
		return errParked
	case Hang:
		// Until the caller gives up, or is dead.
		_, _ = x.client.Read(make([]byte, 1))
		return errCut
	case Outage:
		reset(x.client)
		return errCut
	case CrashAfter:
		_, _ = x.exchanged(event, request)
		life.die()
		return errDead
	case Lost, Failed:
		_, err := x.exchanged(event, request)
		reset(x.client)
		return errors.Join(errCut, err)
	case Garbage:
		answer, err := x.exchanged(event, request)
		_, _ = x.client.Write(bytes.Repeat([]byte{0xff}, max(1, len(answer)/2)))
		return errors.Join(errCut, err)
	case None, Conflict, Throttled, Duplicated, Retried, Busy:
	}
	return x.ask(event, request)
}

// ask sends a request and gives its answer to the client.
func (x *exchange) ask(event *Event, request []byte) error {
	answer, err := x.exchanged(event, request)
	if err != nil {
		return err
	}
	_, err = x.client.Write(answer)
	return err
}

// exchanged sends a request and records the true answer.
func (x *exchange) exchanged(event *Event, request []byte) ([]byte, error) {
	if _, err := x.server.Write(request); err != nil {
		return nil, err
	}
	status := http.StatusOK
	answer, err := whole(x.server, &x.got, func(got []byte) int {
		length, refused := x.proxy.protocol.Answer(got)
		if refused {
			status = http.StatusInternalServerError
		}
		return length
	})
	if err == nil && event != nil {
		x.proxy.life.gate.answered(event, status, answer)
	}
	return answer, err
}

// whole reads until a message is there, and takes it from what was read.
func whole(from net.Conn, buffer *[]byte, length func([]byte) int) ([]byte, error) {
	chunk := make([]byte, 32<<10)
	for {
		if len(*buffer) > 0 {
			if n := length(*buffer); n > 0 {
				message := bytes.Clone((*buffer)[:n])
				*buffer = (*buffer)[n:]
				return message, nil
			}
		}
		n, err := from.Read(chunk)
		*buffer = append(*buffer, chunk[:n]...)
		if err != nil && n == 0 {
			return nil, err
		}
	}
}

// reset closes a connection so that the other side sees it break.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}
