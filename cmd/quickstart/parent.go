package main

import (
	"context"
	"errors"
	"os"
	"time"
)

// parentPoll is how often watchParent looks.
const parentPoll = 500 * time.Millisecond

var errAbandoned = errors.New("the process that started this one is gone")

// watchParent abandons the work when the process that started this one ends.
// Ctrl-C reaches all processes of a terminal, but a SIGTERM that is sent to
// `make run` ends make and `go run` only: they do not pass it on.
func watchParent(ctx context.Context, abandon context.CancelCauseFunc) {
	parent := os.Getppid()
	tick := time.NewTicker(parentPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				abandon(errAbandoned)
			}
		}
	}
}
