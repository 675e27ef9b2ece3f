package faults

import (
	"fmt"
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

func (b *logBook) length() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lines)
}

// passed tells whether a line from the given one on reports the end of a pass
// over the object, as controller-runtime does if it may be talkative.
func (b *logBook) passed(since int, kind, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := fmt.Sprintf(`%q:{"name":%q`, kind, name)
	for _, line := range b.lines[since:] {
		ended := strings.Contains(line, `"msg":"Reconcile `) || strings.Contains(line, `"msg":"Reconciler error"`)
		if ended && strings.Contains(line, of) {
			return true
		}
	}
	return false
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
