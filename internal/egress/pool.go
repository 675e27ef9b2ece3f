package egress

import (
	"cmp"
	"sync"
	"time"
)

// defaultTotal is how many calls may be in flight in all. Each is a goroutine, a
// connection and a pass that is held in memory, so the number bounds these; at ten
// seconds a call, which is the longest, it is still a dozen calls a second.
const defaultTotal = 128

// Pool shares out the calls in flight of a process by namespace, so that whoever
// has many destinations, slow ones or dead ones, leaves room for others. It is safe
// for concurrent use.
type Pool struct {
	total int

	mu        sync.Mutex
	shares    shares
	held      map[string]int
	governors map[*Governor]struct{} // those that metrics tell of
}

// NewPool makes a Pool for so many calls in flight; 0 means 128.
func NewPool(total int) *Pool {
	return &Pool{total: cmp.Or(total, defaultTotal), held: map[string]int{}, governors: map[*Governor]struct{}{}}
}

// take takes a place for a call for the namespace, if it may have one.
func (p *Pool) take(namespace string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shares.room(namespace, p.total, now) {
		p.shares.claim(namespace, now)
		return false
	}
	p.shares.take(namespace)
	return true
}

// give gives the place of a call for the namespace back.
func (p *Pool) give(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares.give(namespace)
}

// count counts a call that was not let out.
func (p *Pool) count(e *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[holdReason(e)]++
}

func (p *Pool) watch(g *Governor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.governors[g] = struct{}{}
}

func (p *Pool) unwatch(g *Governor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.governors, g)
}
