package faults

import (
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// bodies is the verbosity at which client-go logs the bodies of answers of the
// API server, Secrets among them. A process that lets its user ask for that
// much has to filter it by itself: it is not the controllers' to prevent.
const bodies = 8

// logBook keeps what the operator logs, at all levels below bodies.
type logBook struct {
	mu    sync.Mutex
	lines []string
}

// logger writes into the book, everything if talkative.
func (b *logBook) logger(talkative bool) logr.Logger {
	verbosity := 4
	if talkative {
		verbosity = bodies - 1
	}
	return funcr.NewJSON(func(line string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, line)
	}, funcr.Options{Verbosity: verbosity, LogTimestamp: true})
}

func (b *logBook) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.lines...)
}

// errors are the lines that report an error.
func (b *logBook) errors() []string {
	var errors []string
	for _, line := range b.all() {
		if strings.Contains(line, `"error":`) {
			errors = append(errors, line)
		}
	}
	return errors
}
