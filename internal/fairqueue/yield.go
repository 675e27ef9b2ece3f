package fairqueue

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Yield gives the slot of the pass over the request back while the caller waits
// for the outside. The caller must call resume before it goes on: it waits
// until the pass has a slot again. Passes that resume go by the same fairness as
// requests, and before those of their own namespace. After ShutDown, and after
// Done, resume does not wait. Calling it again does nothing.
//
// Several goroutines of a pass may yield at a time. The pass holds no slot
// while one of them is outside: until then the others go on without, and the
// last to resume waits for a slot for all.
//
// For a request that is not handed out there is nothing to give back, and both
// Yield and resume do nothing.
func (q *Queue) Yield(request reconcile.Request) (resume func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.running[request]
	if p == nil {
		return func() {}
	}
	p.outside++
	q.letGo(p)
	q.lines.release(p)
	q.handOut()
	return sync.OnceFunc(func() { q.resume(p) })
}

func (q *Queue) resume(p *pass) {
	if resumed := q.lineUp(p); resumed != nil {
		<-resumed
	}
}

// lineUp has a pass wait for a slot, until the channel is closed. It returns nil
// if the pass may go on at once.
func (q *Queue) lineUp(p *pass) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.outside--
	if p.ended || p.outside > 0 || q.stopping {
		return nil
	}
	p.resumed = make(chan struct{})
	q.lines.enter(p, resuming, q.clock.Now())
	q.handOut()
	return p.resumed
}

// letGo has a pass that waits for a slot go on without.
func (q *Queue) letGo(p *pass) {
	if p.place != nil {
		q.lines.leave(p)
		close(p.resumed)
	}
}
