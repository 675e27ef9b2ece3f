package fairqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestShutDownHandsOutWhatWaitsAndTakesNothingMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		q.Add(request("a", 1))
		q.Add(request("a", 2))
		q.AddAfter(request("a", "delayed"), time.Second)
		take(t, q)
		q.Add(request("a", 1)) // held: it waits in line once the pass has ended
		q.ShutDown()
		if !q.ShuttingDown() {
			t.Error("the queue does not tell of its shutdown")
		}
		q.Add(request("a", "late"))
		<-time.After(time.Minute)
		q.Done(request("a", 1))
		if diff := cmp.Diff([]string{"a/2", "a/1"}, takeAll(t, q)); diff != "" {
			t.Errorf("handed out (-want +got):\n%s", diff)
		}
		if r, shutdown := q.Get(); !shutdown {
			t.Errorf("got %s", r)
		}
		q.ShutDown() // does nothing
	})
}

func TestShutDownWakesAllWhoWait(t *testing.T) {
	t.Parallel()
	for name, shutDown := range map[string]func(*Queue){"at once": (*Queue).ShutDown, "with drain": (*Queue).ShutDownWithDrain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(2)
				get := func() { _, _ = q.Get() }
				idle, other := ends(get), ends(get)
				synctest.Wait()
				shutDown(q)
				synctest.Wait()
				if !idle() || !other() {
					t.Error("a worker without a pass does not end")
				}
			})
		})
	}
}

func TestPassesThatResumeGoOnAtShutDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		for i := range 4 {
			q.Add(request("a", i))
		}
		early, late, twice := q.Yield(take(t, q)), q.Yield(take(t, q)), take(t, q)
		resumed := ends(early)
		synctest.Wait()
		if resumed() {
			t.Fatal("went on without a slot before the shutdown")
		}
		q.ShutDown()
		synctest.Wait()
		if !resumed() {
			t.Error("who waited for a slot waits for ever")
		}
		late()           // does not wait: the test would
		q.Yield(twice)() // nor does this
		for i := range 3 {
			q.Done(request("a", i))
		}
		if got := takeAll(t, q); len(got) != 1 || look(q).Slots != 0 {
			t.Errorf("%s was handed out, then %+v", got, look(q))
		}
	})
}

func TestDrainWaitsForPassesUntilItIsCalledOff(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Queue){
		"done":       func(q *Queue) { q.Done(request("a", 1)) },
		"called off": (*Queue).ShutDown,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(1)
				q.Add(request("a", 1))
				resume := q.Yield(take(t, q))
				drained := ends(q.ShutDownWithDrain)
				synctest.Wait()
				if drained() {
					t.Fatal("a pass that is outside was not waited for")
				}
				resume()
				synctest.Wait()
				if drained() {
					t.Fatal("a pass at work was not waited for")
				}
				end(q)
				synctest.Wait()
				if !drained() {
					t.Error("the drain does not end")
				}
			})
		})
	}
}
