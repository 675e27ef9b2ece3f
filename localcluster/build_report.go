package localcluster

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

// buildReport tells every few seconds how far `go build -v` is. It is given the
// command's standard error: one line for each package compiled, then errors.
type buildReport struct {
	progress io.Writer
	total    int
	stopped  chan struct{}
	done     sync.WaitGroup

	mu       sync.Mutex
	compiled int
	partial  []byte
	last     []string
}

// startBuildReport reports to progress until stop is called.
func startBuildReport(progress io.Writer, total int) *buildReport {
	r := &buildReport{progress: progress, total: total, stopped: make(chan struct{})}
	fmt.Fprintf(progress, "localcluster: building the Kubernetes programs (%d packages): the first build takes about ten minutes on two cores, later ones are cached\n", total)
	r.done.Go(r.run)
	return r
}

func (r *buildReport) run() {
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
			fmt.Fprintf(r.progress, "localcluster: %d of at most %d packages compiled after %s\n",
				compiled, r.total, time.Since(begun).Round(time.Second))
		}
	}
}

func (r *buildReport) stop() {
	close(r.stopped)
	r.done.Wait()
}

// Write takes the next part of the command's output.
func (r *buildReport) Write(text []byte) (int, error) {
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

func (r *buildReport) take(line string) {
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
func (r *buildReport) lastLines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.last, string(r.partial)), "\n")
}
