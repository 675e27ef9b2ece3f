package egress

import (
	"slices"
	"time"
)

// claimLife is for how long a namespace that found no place has a claim on the
// next: a little longer than its calls are told to stay away.
const claimLife = 500 * time.Millisecond

// shares deal a number of places out to namespaces, by dynamic thresholds
// (Choudhury and Hahne, IEEE/ACM Transactions on Networking 1998): a namespace gets
// a further place only while it has fewer than are free. So one that takes all that
// it can gets half of them, n such get 1/(n+1) each, and as much stays free for
// whoever comes next, who need not wait for a slow call of another to end.
//
// Where there are more namespaces than places, those that have the fewest go
// first, and of these the one that waits for longest: however many calls the others
// come with, each has its turn. The zero value is ready to use.
type shares struct {
	taken  int
	by     map[string]int
	claims []claim // the oldest first
}

// claim is that a namespace found no place.
type claim struct {
	namespace string
	until     time.Time
}

// room tells whether the namespace may take one of so many places.
func (s *shares) room(namespace string, places int, now time.Time) bool {
	s.claims = slices.DeleteFunc(s.claims, func(c claim) bool { return c.until.Before(now) })
	own, before := s.by[namespace], 0
	for _, c := range s.claims {
		if c.namespace == namespace {
			break
		}
		if s.by[c.namespace] <= own {
			before++
		}
	}
	return own+before < places-s.taken
}

// claim notes that the namespace found no place.
func (s *shares) claim(namespace string, now time.Time) {
	until := now.Add(claimLife)
	if i := s.claimOf(namespace); i >= 0 {
		s.claims[i].until = until
		return
	}
	s.claims = append(s.claims, claim{namespace, until})
}

func (s *shares) claimOf(namespace string) int {
	return slices.IndexFunc(s.claims, func(c claim) bool { return c.namespace == namespace })
}

// take takes a place for the namespace, whose claim is met with it.
func (s *shares) take(namespace string) {
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.taken++
	s.by[namespace]++
	if i := s.claimOf(namespace); i >= 0 {
		s.claims = slices.Delete(s.claims, i, i+1)
	}
}

// give gives a place of the namespace back.
func (s *shares) give(namespace string) {
	s.taken--
	if s.by[namespace]--; s.by[namespace] == 0 {
		delete(s.by, namespace)
	}
}
