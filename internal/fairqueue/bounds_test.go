package fairqueue

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A namespace with work and none of it begun has its turn within as many
// hand-outs as there are namespaces, whatever the others do, and low priority
// within eight times as many.
func TestWaitsAreBoundedByTheNumberOfNamespaces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		workers, namespaces := 1+random.IntN(8), 2+random.IntN(12)
		q := newQueue(workers)
		names := 0
		fill := func(namespace int, isLow bool) {
			names++
			if r := request(string(rune('a'+namespace)), names); isLow {
				addLow(q, r)
			} else {
				q.Add(r)
			}
		}
		// Each has both at all times, and some of them much.
		for n := range namespaces {
			for range 1 + random.IntN(2)*random.IntN(300) {
				fill(n, false)
				fill(n, true)
			}
		}
		atWork := make([]int, namespaces)
		waits, lowWaits := make([]int, namespaces), make([]int, namespaces)
		var running []reconcile.Request
		for range 1000 {
			for !hasNext(q) {
				i := random.IntN(len(running))
				q.Done(running[i])
				atWork[running[i].Namespace[0]-'a']--
				running[i] = running[len(running)-1]
				running = running[:len(running)-1]
			}
			r, priority, _ := q.GetWithPriority()
			running = append(running, r)
			served := int(r.Namespace[0] - 'a')
			fill(served, priority < 0)
			for n := range namespaces {
				if waits[n]++; n == served || atWork[n] > 0 {
					waits[n] = 0
				}
				if lowWaits[n]++; n == served && priority < 0 {
					lowWaits[n] = 0
				}
				// One hand-out more for each turn of low priority in between.
				if most := namespaces + namespaces/(lowTurn-1) + 1; waits[n] > most {
					t.Fatalf("seed %d: a namespace waited for %d hand-outs beside %d namespaces", seed, waits[n], namespaces)
				}
				if lowWaits[n] > lowTurn*namespaces {
					t.Fatalf("seed %d: low priority waited for %d hand-outs beside %d namespaces", seed, lowWaits[n], namespaces)
				}
			}
			atWork[served]++
		}
	}
}

func TestAWaitDoesNotDependOnTheDepthOfAnothersBacklog(t *testing.T) {
	t.Parallel()
	handedOut := func(backlog int) (got []string) {
		q := newQueue(12)
		for i := range backlog {
			q.Add(request("hog", i))
		}
		var running []reconcile.Request
		for i := range 100 {
			if i%7 == 0 {
				q.Add(request("b", i))
			}
			for !hasNext(q) {
				first := i % len(running)
				q.Done(running[first])
				running = append(running[:first], running[first+1:]...)
			}
			r := take(t, q)
			running = append(running, r)
			got = append(got, r.String())
		}
		return got
	}
	if diff := cmp.Diff(handedOut(100), handedOut(30_000)); diff != "" {
		t.Errorf("handed out with a backlog of 100 and of 30,000 (-small +large):\n%s", diff)
	}
}

// Nothing that is asked for is lost, and no object has two passes at a time,
// with everything going on at once.
func TestNothingIsLostUnderLoad(t *testing.T) {
	t.Parallel()
	const workers, goroutines, objects = 4, 20, 50
	q := newQueue(workers)
	requests := make([]reconcile.Request, objects)
	var wanted, seen [objects]atomic.Int64
	var busy [objects]atomic.Bool
	index := map[reconcile.Request]int{}
	for i := range requests {
		requests[i] = request(string(rune('a'+i%5)), i)
		index[requests[i]] = i
	}
	var atWork atomic.Int64
	work := func() {
		if n := atWork.Add(1); n > workers {
			t.Errorf("%d passes are at work", n)
		}
	}
	var passes, adders sync.WaitGroup
	for range goroutines {
		passes.Go(func() {
			for {
				r, shutdown := q.Get()
				if shutdown {
					return
				}
				work()
				i := index[r]
				if busy[i].Swap(true) {
					t.Errorf("two passes run over %s", r)
				}
				version := wanted[i].Load()
				for range version % 3 {
					atWork.Add(-1)
					resume := q.Yield(r)
					resume()
					work()
				}
				seen[i].Store(version)
				if version%5 == 0 {
					q.AddAfter(r, time.Duration(version%7)*time.Microsecond)
				}
				busy[i].Store(false)
				atWork.Add(-1)
				q.Done(r)
			}
		})
	}
	for a := range 4 {
		adders.Go(func() {
			random := rand.New(rand.NewPCG(uint64(a), 0))
			for range 5000 {
				i := random.IntN(objects)
				wanted[i].Add(1)
				if random.IntN(2) == 0 {
					addLow(q, requests[i])
				} else {
					q.Add(requests[i])
				}
			}
		})
	}
	adders.Wait()
	q.ShutDownWithDrain()
	passes.Wait()
	for i := range requests {
		if wanted[i].Load() != seen[i].Load() {
			t.Errorf("the last pass over %s saw version %d, and %d was asked for", requests[i], seen[i].Load(), wanted[i].Load())
		}
	}
	if left := look(q); left.Slots != 0 || left.Running != 0 {
		t.Errorf("at the end there is %+v", left)
	}
}

// The cases of a hostile tenant: 2,000 objects at a quick provider, and 50
// whose provider answers after 9 s. Good adds one object each 10 ms.
func TestATenantDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		queue          func() workQueue
		goroutines     int
		atLeast, under time.Duration
	}{
		"fair":                {func() workQueue { return newQueue(8) }, 8 + 128, 0, 3 * time.Millisecond},
		"first in, first out": {func() workQueue { return plainQueue() }, 8, 5 * time.Second, time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				worst := simulate(test.queue(), test.goroutines)
				t.Logf("good's worst wait for a worker: %s", worst)
				if worst < test.atLeast || worst >= test.under {
					t.Errorf("good's worst wait is %s, want from %s to under %s", worst, test.atLeast, test.under)
				}
			})
		})
	}
}
