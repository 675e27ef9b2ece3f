package engine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// schedule remembers when each object is next to be compared with what is
// outside the cluster, the newest version of it that is known, and how often in
// a row its passes were out of date. It is a hint: losing it, at a restart,
// when the cache is fresh, costs nothing but a comparison spread over one
// interval.
type schedule struct {
	now    func() time.Time
	random func() float64

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
}

type entry struct {
	uid   types.UID
	next  time.Time
	stale int
	seen  string // the newest resourceVersion that a pass has learned of
}

func newSchedule(now func() time.Time, random func() float64) *schedule {
	return &schedule{now: now, random: random, entries: map[types.NamespacedName]*entry{}}
}

// due tells whether the object's time has come.
func (s *schedule) due(name types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	return e != nil && e.uid == uid && !e.next.IsZero() && !s.now().Before(e.next)
}

// remaining is how long it is until the object's time comes, after a pass that
// was not out of date. An object that was not seen before gets a time anywhere
// in the interval, so that a restart does not become a rush; one that was just
// compared, or whose time had come, gets the interval, give or take a tenth.
func (s *schedule) remaining(name types.NamespacedName, uid types.UID, interval time.Duration, compared bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, now := s.of(name, uid), s.now()
	e.stale = 0
	switch {
	case compared, !e.next.IsZero() && !e.next.After(now):
		e.next = now.Add(time.Duration(float64(interval) * (0.9 + 0.2*s.random())))
	case e.next.IsZero():
		e.next = now.Add(time.Duration(float64(interval) * s.random()))
	case e.next.After(now.Add(interval + interval/5)): // the interval was shortened
		e.next = now.Add(interval)
	}
	return max(e.next.Sub(now), time.Millisecond)
}

// Bounds of how long the cache gets to catch up before a pass that found
// itself out of date is run again.
const (
	minCatchUp = 100 * time.Millisecond
	maxCatchUp = 10 * time.Second
)

// catchUp is how long to wait after a pass that was out of date: longer each
// time in a row, and spread.
func (s *schedule) catchUp(name types.NamespacedName, uid types.UID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(name, uid)
	delay := min(minCatchUp<<min(e.stale, 10), maxCatchUp)
	e.stale++
	return time.Duration(float64(delay) * (1 + s.random()))
}

func (s *schedule) of(name types.NamespacedName, uid types.UID) *entry {
	e := s.entries[name]
	if e == nil || e.uid != uid {
		e = &entry{uid: uid}
		s.entries[name] = e
	}
	return e
}

// saw notes the newest version of an object that a pass has learned of: its
// own last write, for one.
func (s *schedule) saw(name types.NamespacedName, uid types.UID, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(name, uid).seen = version
}

// outdated tells whether the cache's version of an object is older than one
// that an earlier pass has learned of. A pass on it would undo, or fail to
// undo, what that pass did.
func (s *schedule) outdated(name types.NamespacedName, uid types.UID, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if e == nil || e.uid != uid || e.seen == "" {
		return false
	}
	older, err := resourceversion.CompareResourceVersion(version, e.seen)
	return err == nil && older < 0
}

// forget drops an object that is gone.
func (s *schedule) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}
