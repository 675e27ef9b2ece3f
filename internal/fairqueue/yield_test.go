package fairqueue

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAPassThatWaitsOutsideHoldsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		a, b := request("a", 1), request("b", 1)
		q.Add(a)
		q.Add(b)
		take(t, q)
		resume := q.Yield(a)
		if got := take(t, q); got != b {
			t.Fatalf("got %s", got)
		}
		resumed := ends(resume)
		synctest.Wait()
		if resumed() {
			t.Fatal("the pass went on without a slot")
		}
		q.Done(b)
		synctest.Wait()
		if !resumed() {
			t.Fatal("the pass does not go on although a slot is free")
		}
		resume() // does nothing the second time
		q.Done(a)
		if diff := cmp.Diff(inside{}, look(q)); diff != "" {
			t.Errorf("left at the end (-want +got):\n%s", diff)
		}
		q.ShutDown()
	})
}

func TestPassesThatResumeAreServedFairlyAndBeforeTheirOwnNamespacesRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		outside := []reconcile.Request{request("a", 1), request("a", 2), request("b", 1)}
		var resumes []func()
		for _, r := range outside {
			q.Add(r)
			resumes = append(resumes, q.Yield(take(t, q)))
		}
		blocker := request("blocker", 1)
		q.Add(blocker)
		take(t, q)

		works := make(chan reconcile.Request, 1)
		for _, r := range []reconcile.Request{request("a", "new"), request("b", "new")} {
			q.Add(r)
			go func() { works <- take(t, q) }()
		}
		for i, r := range outside {
			go func() {
				resumes[i]()
				works <- r
			}()
			synctest.Wait()
		}
		var got []string
		for range 5 {
			q.Done(blocker)
			blocker = <-works
			got = append(got, blocker.String())
		}
		if diff := cmp.Diff([]string{"a/1", "b/1", "a/2", "b/new", "a/new"}, got); diff != "" {
			t.Errorf("went on (-want +got):\n%s", diff)
		}
		q.Done(blocker)
		q.ShutDown()
	})
}

// With every goroutine of the controller in a pass, the pass that is next
// cannot be begun. Those that resume must not wait for it.
func TestPassesResumeWhileNobodyTakesRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		for i := range 2 {
			q.Add(request("a", i))
		}
		resume := q.Yield(take(t, q))
		take(t, q)
		resumed := ends(resume)
		q.Add(request("b", 1)) // its turn, but there is no taker
		q.Done(request("a", 1))
		synctest.Wait()
		if !resumed() {
			t.Error("a pass waits for one that nobody begins")
		}
		q.ShutDown()
	})
}

func TestAPassMayEndWhileItWaits(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{"outside": false, "for a slot": true}
	for name, resumes := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(1)
				a, b := request("a", 1), request("b", 1)
				q.Add(a)
				q.Add(b)
				take(t, q)
				resume := q.Yield(a)
				take(t, q)
				resumed := func() bool { return false }
				if resumes {
					resumed = ends(resume)
					synctest.Wait()
				}
				q.Done(a) // as after a panic that was recovered
				synctest.Wait()
				if resumes && !resumed() {
					t.Error("a goroutine of a pass that has ended waits for ever")
				}
				q.Add(a)
				q.Done(b)
				if got := take(t, q); got != a {
					t.Fatalf("got %s", got)
				}
				resume() // of the pass that has ended: not this one's concern
				if diff := cmp.Diff(inside{Slots: 1, Running: 1, Namespaces: 2}, look(q)); diff != "" {
					t.Errorf("with one pass at work (-want +got):\n%s", diff)
				}
				q.Done(a)
				q.ShutDown()
			})
		})
	}
}

// Steps of a pass may run side by side, each with calls of its own.
func TestSeveralGoroutinesOfAPassYield(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		a, b := request("a", 1), request("b", 1)
		q.Add(a)
		q.Add(b)
		take(t, q)
		one, two := q.Yield(a), q.Yield(a)
		take(t, q)
		one() // goes on, as the other is outside still
		again := q.Yield(a)
		again()
		resumed := ends(two)
		synctest.Wait()
		if resumed() {
			t.Fatal("the last to resume did not wait for a slot")
		}
		three := q.Yield(a)
		synctest.Wait()
		if !resumed() {
			t.Fatal("a goroutine waits for a slot that its pass does not want while another is outside")
		}
		q.Done(b)
		if slots := look(q).Slots; slots != 0 {
			t.Fatalf("%d slots are held while the pass waits outside", slots)
		}
		three()
		if slots := look(q).Slots; slots != 1 {
			t.Fatalf("%d slots are held by a pass at work", slots)
		}
		q.Done(a)
		q.ShutDown()
	})
}

func TestYieldOfWhatIsNotHandedOutDoesNothing(t *testing.T) {
	t.Parallel()
	q := newQueue(1)
	q.Add(request("a", 1))
	q.Yield(request("a", 1))()
	q.Yield(request("b", 1))()
	if got := take(t, q); got != request("a", 1) || look(q).Slots != 1 {
		t.Errorf("got %s, then %+v", got, look(q))
	}
}
