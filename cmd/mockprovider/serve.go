package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// drainTime is how long calls under way may take to end when the program is
// told to end.
const drainTime = 5 * time.Second

// serve serves until ctx ends. It prints a line with the URL of each listener
// once it takes calls.
func serve(ctx context.Context, c config, stdout io.Writer) error {
	mock, err := mockprovider.New(c.options)
	if err != nil {
		return err
	}
	servers := []*server{{name: "mockprovider listens on", address: c.listen, handler: mock}}
	if c.adminListen != "" {
		servers = append(servers, &server{name: "its faults are made on", address: c.adminListen, handler: mock.Admin()})
	}
	failed := make(chan error, len(servers))
	for _, s := range servers {
		if err := s.start(failed); err != nil {
			return errors.Join(err, stop(servers))
		}
		if _, err := fmt.Fprintf(stdout, "%s http://%s\n", s.name, s.listener.Addr()); err != nil {
			return errors.Join(err, stop(servers))
		}
	}
	select {
	case <-ctx.Done():
		return stop(servers)
	case err := <-failed:
		return errors.Join(err, stop(servers))
	}
}

type server struct {
	name     string
	address  string
	handler  http.Handler
	listener net.Listener
	http     *http.Server
	hangup   context.CancelFunc // ends the calls that hang on demand
}

func (s *server) start(failed chan<- error) error {
	listener, err := net.Listen("tcp", s.address) //nolint:noctx // does not block
	if err != nil {
		return fmt.Errorf("listening on %s: %w", s.address, err)
	}
	base, hangup := context.WithCancel(context.Background())
	s.listener, s.hangup = listener, hangup
	s.http = &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return nil
}

// stop lets calls under way end, but for those that hang.
func stop(servers []*server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var errs []error
	for _, s := range servers {
		if s.http == nil {
			continue
		}
		s.hangup()
		errs = append(errs, s.http.Shutdown(ctx))
	}
	return errors.Join(errs...)
}
