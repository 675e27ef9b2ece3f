package engine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// schedule remembers when each object is next to be compared with what is
// outside the cluster. It is a hint: losing it, at a restart, costs nothing
// but a comparison spread over one interval.
type schedule struct {
	now    func() time.Time
	random func() float64

	mu   sync.Mutex
	next map[types.UID]time.Time
}

func newSchedule(now func() time.Time, random func() float64) *schedule {
	return &schedule{now: now, random: random, next: map[types.UID]time.Time{}}
}

// due tells whether the object's time has come.
func (s *schedule) due(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, known := s.next[uid]
	return known && !s.now().Before(next)
}

// remaining is how long it is until the object's time comes. An object that
// was not seen before gets a time anywhere in the interval, so that a restart
// does not become a rush; one that was just compared gets the interval, give
// or take a tenth.
func (s *schedule) remaining(uid types.UID, interval time.Duration, compared bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	next, known := s.next[uid]
	switch {
	case compared:
		next = now.Add(time.Duration(float64(interval) * (0.9 + 0.2*s.random())))
	case !known:
		next = now.Add(time.Duration(float64(interval) * s.random()))
	case next.After(now.Add(interval + interval/5)): // the interval was shortened
		next = now.Add(interval)
	}
	s.next[uid] = next
	return max(next.Sub(now), time.Millisecond)
}

// forget drops an object that is gone.
func (s *schedule) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, uid)
}
