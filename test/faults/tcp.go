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

// Relay is an outside's address as the operator knows it, say from an object's
// spec: it is the same for all incarnations.
type Relay struct {
	protocol Protocol
	target   string
	listener net.Listener

	mu   sync.Mutex
	life *Life // that the next connection is of; nil before the first
}

// NewRelay makes a Relay to the outside at the target address.
func NewRelay(ctx context.Context, protocol Protocol, target string) (*Relay, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening in place of %s: %w", target, err)
	}
	r := &Relay{protocol: protocol, target: target, listener: listener}
	go r.serve(ctx)
	return r, nil
}

// Address is what the operator is to connect to.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Close ends it. Connections end with their incarnations.
func (r *Relay) Close() { _ = r.listener.Close() }

// TCP stands between the incarnation and an outside that speaks TCP: the
// relay's connections are the incarnation's from here on.
func (l *Life) TCP(relay *Relay) {
	relay.mu.Lock()
	defer relay.mu.Unlock()
	relay.life = l
}

func (r *Relay) serve(ctx context.Context) {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		life := r.life
		r.mu.Unlock()
		go r.connect(ctx, life, client)
	}
}

// connect runs a connection of an incarnation.
func (r *Relay) connect(ctx context.Context, life *Life, client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.target)
	if err != nil {
		reset(client)
		return
	}
	if life == nil || !life.keep(client) || !life.keep(server) {
		reset(client)
		_ = server.Close()
		return
	}
	(&exchange{protocol: r.protocol, life: life, client: client, server: server}).run()
}

// exchange is one connection of a client.
type exchange struct {
	protocol       Protocol
	life           *Life
	client, server net.Conn
	sent, got      []byte // what was read and not used yet
}

// run passes requests on, one after the other, until one side has enough.
func (x *exchange) run() {
	defer func() {
		for _, connection := range []net.Conn{x.client, x.server} {
			x.life.release(connection)
		}
		_ = x.client.Close()
	}()
	for {
		var call Call
		request, err := whole(x.client, &x.sent, func(sent []byte) (length int) {
			length, call = x.protocol.Request(sent)
			return length
		})
		if err != nil {
			_ = x.server.Close()
			return
		}
		if call.Effect.Verb == "" {
			err = x.ask(nil, request)
		} else {
			call.Effect.Port = x.protocol.Port
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
	gate, life := x.life.gate, x.life
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
		x.life.release(x.server)
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
		length, refused := x.protocol.Answer(got)
		if refused {
			status = http.StatusInternalServerError
		}
		return length
	})
	if err == nil && event != nil {
		x.life.gate.answered(event, status, answer)
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
