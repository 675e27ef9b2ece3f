package faults

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Stale is what goes wrong with the stream of one of the operator's informers.
type Stale struct {
	// Resource is the informer's, with "metadata/" before it for one that gets metadata only.
	Resource string
	// Frame is the frame of the stream that it goes wrong at, counted from 1;
	// 0 means never.
	Frame int
	// How is what goes wrong.
	How StaleKind
}

// StaleKind is a way in which a stream goes wrong.
type StaleKind string

const (
	// Frozen means: nothing arrives until the operator has come to rest on what it knows.
	Frozen StaleKind = "frozen"
	// Doubled means: the frame arrives twice.
	Doubled StaleKind = "doubled"
	// Relisted means: the stream breaks and the informer's next request is answered
	// with 410 Gone, so that it lists again.
	Relisted StaleKind = "relisted"
)

var staleKinds = []StaleKind{Frozen, Doubled, Relisted}

// staleness counts the frames of the informers' streams and carries out what is
// planned for one of them.
type staleness struct {
	plan Stale

	mu      sync.Mutex
	frames  map[string]int
	hit     bool
	holding bool
	gone    bool
	release chan struct{}
}

func newStaleness(plan Stale) *staleness {
	return &staleness{plan: plan, frames: map[string]int{}, release: make(chan struct{})}
}

// watch opens a stream. told is called when it has, and with each frame.
func (s *staleness) watch(request *http.Request, next http.RoundTripper, told func(resource string)) (*http.Response, error) {
	resource, _, _ := splitPath(request.URL.Path)
	if strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata") {
		resource = "metadata/" + resource
	}
	if s.takeGone(resource) {
		return answer(request, Effect{}, http.StatusGone, "Expired"), nil
	}
	answer, err := next.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	told(resource)
	answer.Body = &stream{
		told: func() { told(resource) }, staleness: s, resource: resource, body: answer.Body, reader: bufio.NewReader(answer.Body),
		json: strings.Contains(answer.Header.Get("Content-Type"), "json"), done: request.Context().Done(), closed: make(chan struct{}),
	}
	return answer, nil
}

func (s *staleness) takeGone(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone || resource != s.plan.Resource {
		return false
	}
	s.gone = false
	return true
}

// next counts a frame and tells what is to happen to it.
func (s *staleness) next(resource string) StaleKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames[resource]++
	if resource != s.plan.Resource {
		return ""
	}
	if s.plan.How == Frozen && s.holding {
		return Frozen
	}
	if s.hit || s.frames[resource] != s.plan.Frame {
		return ""
	}
	s.hit = true
	s.holding = s.plan.How == Frozen
	s.gone = s.plan.How == Relisted
	return s.plan.How
}

// disarm gives up what was planned.
func (s *staleness) disarm() {
	s.thaw()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan, s.gone = Stale{}, false
}

// frozen tells whether a stream stands still.
func (s *staleness) frozen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holding
}

// thaw lets the stream go on.
func (s *staleness) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding {
		s.holding = false
		close(s.release)
	}
}

// wasHit tells whether what was planned has happened, and is over.
func (s *staleness) wasHit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hit && !s.holding && !s.gone
}

// counts are the frames of each informer so far.
func (s *staleness) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	maps.Copy(counts, s.frames)
	return counts
}

// stream is the body of an answer to a watch, read frame by frame.
type stream struct {
	told      func()
	staleness *staleness
	resource  string
	body      io.ReadCloser
	reader    *bufio.Reader
	json      bool
	done      <-chan struct{}
	once      sync.Once
	closed    chan struct{}
	ready     []byte
}

// Read reads from the frame that is due.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		frame, err := s.frame()
		if err != nil {
			return 0, err
		}
		switch s.staleness.next(s.resource) {
		case Frozen:
			select {
			case <-s.staleness.release:
			case <-s.done:
				return 0, io.EOF
			case <-s.closed:
				return 0, io.EOF
			}
		case Doubled:
			frame = append(frame, frame...)
		case Relisted:
			return 0, io.EOF
		}
		s.told()
		s.ready = frame
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// frame reads a whole frame.
func (s *stream) frame() ([]byte, error) {
	if s.json {
		return s.reader.ReadBytes('\n')
	}
	var size [4]byte
	if _, err := io.ReadFull(s.reader, size[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(size[:])
	if length > 16<<20 {
		return nil, fmt.Errorf("a frame of %d bytes", length)
	}
	frame := append(size[:], make([]byte, length)...)
	_, err := io.ReadFull(s.reader, frame[4:])
	return frame, err
}

// Close ends the stream, a frozen one too.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.body.Close()
}
