package gobuild

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	reportEvery = 10 * time.Second
	keptLines   = 20
)

// report tells every few seconds how far `go build -v` is. It is given the
// command's standard error: one line for each package compiled, then errors.
type report struct {
	progress io.Writer
	name     string
	total    int
	stopped  chan struct{}
	done     sync.WaitGroup

	mu       sync.Mutex
	compiled int
	partial  []byte
	last     []string
}

// startReport reports to progress until stop is called.
func startReport(progress io.Writer, name, takes string, total int) *report {
	r := &report{progress: progress, name: name, total: total, stopped: make(chan struct{})}
	fmt.Fprintf(progress, "localcluster: building %s (%d packages): the first build takes %s, later ones are cached\n", name, total, takes)
	r.done.Go(r.run)
	return r
}

func (r *report) run() {
	begun := time.Now()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-r.stopped:
			return
		case <-ticker.C:
			r.mu.Lock()
			compiled := r.compiled
			r.mu.Unlock()
			// Packages in the build cache are not counted: go build does not name them.
			fmt.Fprintf(r.progress, "localcluster: %s: %d of at most %d packages compiled after %s\n",
				r.name, compiled, r.total, time.Since(begun).Round(time.Second))
		}
	}
}

func (r *report) stop() {
	close(r.stopped)
	r.done.Wait()
}

// Write takes the next part of the command's output.
func (r *report) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partial = append(r.partial, text...)
	for {
		line, rest, found := bytes.Cut(r.partial, []byte("\n"))
		if !found {
			return len(text), nil
		}
		r.partial = rest
		r.take(string(line))
	}
}

func (r *report) take(line string) {
	// A package path has no blanks; lines about downloads and errors do.
	if line != "" && !strings.ContainsAny(line, " \t") {
		r.compiled++
		return
	}
	r.last = append(r.last, line)
	if len(r.last) > keptLines {
		r.last = r.last[len(r.last)-keptLines:]
	}
}

// lastLines is the end of the output, less the names of packages.
func (r *report) lastLines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.last, string(r.partial)), "\n")
}
