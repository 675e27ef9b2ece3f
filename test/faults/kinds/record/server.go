package record

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
)

// The protocol has a line for each request and each answer:
//
//	GET key               VALUE version text, or NONE
//	PUT key version text  OK, OLD when a later version is there, or GONE after a DEL
//	DEL key               OK
//
// A record that was deleted stays so: a PUT that comes late makes no other one.
const (
	answerOK    = "OK"
	answerValue = "VALUE"
	answerNone  = "NONE"
	answerOld   = "OLD"
	answerGone  = "GONE"
)

// server keeps records.
type server struct {
	listener net.Listener
	wait     sync.WaitGroup

	mu      sync.Mutex
	records map[string]Value
	made    []string // keys, in the order in which they came
	deleted map[string]bool
	arrived map[string]int // by verb
	done    map[string]int // records made and deleted, by verb
}

func newServer(ctx context.Context) (*server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{
		listener: listener, records: map[string]Value{}, deleted: map[string]bool{},
		arrived: map[string]int{}, done: map[string]int{},
	}
	s.wait.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(connection)
		}
	})
	return s, nil
}

func (s *server) close() {
	_ = s.listener.Close()
	s.wait.Wait()
}

func (s *server) serve(connection net.Conn) {
	defer connection.Close()
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		if _, err := fmt.Fprintln(connection, s.answer(lines.Text())); err != nil {
			return
		}
	}
}

func (s *server) answer(request string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := append(strings.SplitN(request, " ", 4), "", "", "")
	verb, key := words[0], words[1]
	s.arrived[verb]++
	known, there := s.records[key]
	switch verb {
	case "GET":
		if !there {
			return answerNone
		}
		return fmt.Sprintf("%s %d %s", answerValue, known.Version, known.Text)
	case "PUT":
		version, err := strconv.ParseInt(words[2], 10, 64)
		switch {
		case err != nil:
			return "ERROR"
		case s.deleted[key]:
			return answerGone
		case there && known.Version > version:
			return answerOld
		case !there:
			s.made = append(s.made, key)
			s.done[verb]++
		}
		s.records[key] = Value{Version: version, Text: words[3]}
	case "DEL":
		if there {
			s.done[verb]++
		}
		delete(s.records, key)
		s.deleted[key] = true
	}
	return answerOK
}

// spoil changes the record's text behind everybody's back.
func (s *server) spoil(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[key] = Value{Version: s.records[key].Version, Text: "spoilt"}
}

// text is a record's; empty when there is none.
func (s *server) text(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[key].Text
}
