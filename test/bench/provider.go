package main

import (
	"context"
	"net/http"
	"time"

	"avalonhosting.example/bucketoperator/internal/programs"
	"avalonhosting.example/bucketoperator/localcluster"
)

const (
	poll         = 20 * time.Millisecond
	startTimeout = time.Minute
)

func (w *world) startProvider(ctx context.Context, name string, args ...string) (*programs.Provider, error) {
	return programs.StartProvider(ctx, w.dir, name, w.log(name), append([]string{"--activate-after=0"}, args...)...)
}

// hang lets all calls hang from now on.
func hang(ctx context.Context, p *programs.Provider) error {
	return p.Ask(ctx, http.MethodPost, "faults", `{"hang": true}`, nil)
}

// forget begins to count calls from 0.
func forget(ctx context.Context, p *programs.Provider) error {
	return p.Ask(ctx, http.MethodDelete, "calls", "", nil)
}

// callsOf are the calls since the last forget, by operation.
func callsOf(ctx context.Context, p *programs.Provider) (map[string]int, error) {
	var answer struct {
		Counts map[string]int `json:"counts"`
	}
	err := p.Ask(ctx, http.MethodGet, "calls", "", &answer)
	return answer.Counts, err
}

// running is an error once the program has ended.
func running(program *localcluster.Program) error {
	select {
	case <-program.Ended():
		return program.Err()
	default:
		return nil
	}
}
