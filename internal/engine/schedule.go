package engine

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Bounds are the least and the greatest of delays that grow.
type Bounds struct{ Min, Max time.Duration }

// delay is the delay after so many in a row: it doubles.
func (b Bounds) delay(before int) time.Duration {
	if before > 40 { // would overflow
		return b.Max
	}
	return min(b.Min<<before, b.Max)
}

var (
	// defaultBackoff bounds the delays between the failures of a step.
	defaultBackoff = Bounds{Min: 250 * time.Millisecond, Max: 5 * time.Minute}
	// lookAgain bounds the delays after which a step that waits for an event is
	// run although none came.
	lookAgain = Bounds{Min: 15 * time.Second, Max: 5 * time.Minute}
	// catchUpBounds bound how long the cache gets to catch up before a pass that
	// found itself out of date is run again.
	catchUpBounds = Bounds{Min: 100 * time.Millisecond, Max: 10 * time.Second}
)

// schedule remembers for each object when its next resync is due, when each of
// its steps is to be run again, the newest version of it that is known, and how
// often in a row its passes were out of date. It is a hint: losing it, at a
// restart, when the cache is fresh, costs nothing but a resync spread over one
// interval and a step that is run early.
//
// It is the rate limiter of the controller's queue, too: after a pass that has
// failed, controller-runtime asks it when the next is to be.
type schedule struct {
	now     func() time.Time
	random  func() float64
	backoff Bounds

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
}

type entry struct {
	uid        types.UID
	generation int64
	resync     time.Time
	stale      int
	observed   string                  // the newest resourceVersion that a pass has learned of
	doubtful   bool                    // a write may have been carried out although it failed
	steps      map[string]*stepBackoff // those that are not done
	errors     int                     // passes in a row that failed besides their steps
	next       time.Duration           // what When answers, once
}

// stepBackoff is how often in a row a step was not done, and until when it waits.
type stepBackoff struct {
	failures, blocked int
	until             time.Time // zero unless it failed
}

func newSchedule(now func() time.Time, random func() float64, backoff Bounds) *schedule {
	return &schedule{
		now: now, random: random, backoff: cmp.Or(backoff, defaultBackoff),
		entries: map[types.NamespacedName]*entry{},
	}
}

// resyncDue tells whether the time of the object's resync has come.
func (s *schedule) resyncDue(name types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	return e != nil && e.uid == uid && !e.resync.IsZero() && !s.now().Before(e.resync)
}

// untilResync is how long it is until the object's resync, after a pass that
// was not out of date. An object that was not seen before gets a time anywhere
// in the interval, so that a restart does not become a rush; one that was just
// resynced, or whose time had come, gets the interval, give or take a tenth.
func (s *schedule) untilResync(name types.NamespacedName, uid types.UID, interval time.Duration, resynced bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, now := s.of(name, uid), s.now()
	e.stale = 0
	switch {
	case resynced, !e.resync.IsZero() && !e.resync.After(now):
		e.resync = now.Add(s.spread(interval))
	case e.resync.IsZero():
		e.resync = now.Add(time.Duration(float64(interval) * s.random()))
	case e.resync.After(now.Add(interval + interval/5)): // the interval was shortened
		e.resync = now.Add(interval)
	}
	return max(e.resync.Sub(now), time.Millisecond)
}

// spread is d, give or take a tenth.
func (s *schedule) spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*s.random()))
}

// heldFor is how long a step that has failed is not to be run again, unless
// something has changed: of the object's generation this tells, of all else
// the caller, who asks only when no event has started the pass.
func (s *schedule) heldFor(name types.NamespacedName, obj Object, step string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(name, obj.GetUID())
	b := e.steps[step]
	if b == nil || e.generation != obj.GetGeneration() {
		return 0
	}
	return max(b.until.Sub(s.now()), 0)
}

// afterStep notes how a step fared and answers when it is to be run again; 0
// means that it does not ask.
func (s *schedule) afterStep(name types.NamespacedName, obj Object, step string, o Outcome) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(name, obj.GetUID())
	if e.generation != obj.GetGeneration() {
		e.generation, e.steps = obj.GetGeneration(), nil
	}
	switch o.verdict {
	case verdictFailed, verdictBlocked, verdictInProgress:
	case verdictSkipped:
		return 0 // nothing is known of it
	case verdictDone, verdictTerminal, verdictRequeue, verdictUnchanged:
		delete(e.steps, step)
		return o.after
	}
	b := e.steps[step]
	if b == nil {
		if e.steps == nil {
			e.steps = map[string]*stepBackoff{}
		}
		b = &stepBackoff{}
		e.steps[step] = b
	}
	if o.verdict == verdictFailed {
		delay := cmp.Or(o.after, s.backoff.delay(b.failures))
		b.failures, b.blocked, b.until = b.failures+1, 0, s.now().Add(delay)
		return delay
	}
	b.failures, b.until = 0, time.Time{}
	if o.after > 0 {
		b.blocked = 0
		return o.after
	}
	b.blocked++
	return s.spread(lookAgain.delay(b.blocked - 1))
}

// catchUp is how long to wait after a pass that was out of date: longer each
// time in a row, and spread.
func (s *schedule) catchUp(name types.NamespacedName, uid types.UID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(name, uid)
	delay := catchUpBounds.delay(e.stale)
	e.stale++
	return time.Duration(float64(delay) * (1 + s.random()))
}

func (s *schedule) of(name types.NamespacedName, uid types.UID) *entry {
	e := s.entries[name]
	if e == nil || e.uid != uid && uid != "" {
		e = &entry{uid: uid}
		s.entries[name] = e
	}
	return e
}

// observe notes the newest version of an object that a pass has learned of: its
// own last write, for one.
func (s *schedule) observe(name types.NamespacedName, uid types.UID, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(name, uid)
	e.observed, e.doubtful = version, false
}

// doubt notes that a write of the object may have been carried out although it
// failed: which version the cache must have is then for the API server to say.
func (s *schedule) doubt(name types.NamespacedName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(name, uid).doubtful = true
}

// isDoubtful tells whether a write of the object is in doubt.
func (s *schedule) isDoubtful(name types.NamespacedName, uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	return e != nil && e.uid == uid && e.doubtful
}

// outdated tells whether the cache's version of an object is older than one
// that an earlier pass has learned of. A pass on it would undo, or fail to
// undo, what that pass did.
func (s *schedule) outdated(name types.NamespacedName, uid types.UID, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if e == nil || e.uid != uid || e.observed == "" {
		return false
	}
	older, err := resourceversion.CompareResourceVersion(version, e.observed)
	return err == nil && older < 0
}

// forget drops an object that is gone.
func (s *schedule) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}

// failed has When answer next for the object, once.
func (s *schedule) failed(name types.NamespacedName, uid types.UID, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(name, uid).next = next
}

// When is how long the object waits after a pass that has failed: as long as
// the pass itself has asked for or, where it could not, a time that grows.
func (s *schedule) When(request reconcile.Request) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.of(request.NamespacedName, "")
	if next := e.next; next > 0 {
		e.next = 0
		return next
	}
	e.errors++
	return s.backoff.delay(e.errors - 1)
}

// Forget ends the failures in a row.
func (s *schedule) Forget(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[request.NamespacedName]; e != nil {
		e.errors, e.next = 0, 0
	}
}

// NumRequeues is how many passes in a row have failed besides their steps.
func (s *schedule) NumRequeues(request reconcile.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[request.NamespacedName]; e != nil {
		return e.errors
	}
	return 0
}
