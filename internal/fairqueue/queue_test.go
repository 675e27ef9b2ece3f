package fairqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestOrderWithOneWorker(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fill func(q *Queue)
		want []string
	}{
		"namespaces take turns, whatever each has waiting": {
			fill: func(q *Queue) {
				q.Add(request("a", 1))
				q.Add(request("a", 2))
				q.Add(request("a", 3))
				q.Add(request("b", 1))
				q.Add(request("c", 1))
				q.Add(request("b", 2))
			},
			want: []string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"},
		},
		"what has changed goes before resyncs, in a namespace and between them": {
			fill: func(q *Queue) {
				addLow(q, request("a", "resync"), request("b", "resync"))
				q.Add(request("a", "new"))
				q.Add(request("c", "new"))
			},
			want: []string{"a/new", "c/new", "b/resync", "a/resync"},
		},
		"a resync of what has changed meanwhile is as urgent as the change, and goes behind earlier ones": {
			fill: func(q *Queue) {
				addLow(q, request("a", 1), request("a", 2))
				q.Add(request("a", 3))
				q.Add(request("a", 2))
			},
			want: []string{"a/3", "a/2", "a/1"},
		},
		"a change that is resynced stays a change": {
			fill: func(q *Queue) {
				q.Add(request("a", 1))
				q.Add(request("a", 2))
				addLow(q, request("a", 1))
				addLow(q, request("a", 3))
			},
			want: []string{"a/1", "a/2", "a/3"},
		},
		"what is asked for often comes once": {
			fill: func(q *Queue) {
				q.Add(request("a", 1))
				q.Add(request("a", 1))
				q.AddAfter(request("a", 1), time.Hour)
				q.AddRateLimited(request("a", 1))
			},
			want: []string{"a/1"},
		},
		"low priority gets one hand-out in eight while others wait": {
			fill: func(q *Queue) {
				addLow(q, request("z", 1), request("z", 2), request("y", 1))
				for i := range 20 {
					q.Add(request("a", i))
				}
			},
			want: []string{
				"a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "z/1",
				"a/7", "a/8", "a/9", "a/10", "a/11", "a/12", "a/13", "y/1",
				"a/14", "a/15", "a/16", "a/17", "a/18", "a/19", "z/2",
			},
		},
		"a namespace's own changes do not keep its resyncs from their turn": {
			fill: func(q *Queue) {
				addLow(q, request("a", "resync"))
				for i := range 9 {
					q.Add(request("a", i))
				}
			},
			want: []string{"a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/resync", "a/7", "a/8"},
		},
		"cluster-scoped objects are a namespace of their own": {
			fill: func(q *Queue) {
				q.Add(request("a", 1))
				q.Add(request("a", 2))
				q.Add(request("", 1))
			},
			want: []string{"a/1", "/1", "a/2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(1)
			test.fill(q)
			// The pass of the first Get holds all others up until it is done.
			if diff := cmp.Diff(test.want, takeAll(t, q)); diff != "" {
				t.Errorf("handed out (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheNamespaceWithTheFewestPassesAtWorkIsNext(t *testing.T) {
	t.Parallel()
	q := newQueue(12)
	for i := range 5 {
		q.Add(request("a", i))
	}
	for range 3 {
		take(t, q)
	}
	if hasNext(q) {
		t.Error("a namespace alone gets more than a quarter of the slots")
	}
	q.Add(request("b", 0))
	q.Add(request("b", 1))
	q.Add(request("b", 2))
	var got []string
	got = append(got, take(t, q).String())
	q.Done(request("a", 0))
	got = append(got, take(t, q).String()) // b has one at work, a two
	q.Done(request("a", 1))
	got = append(got, take(t, q).String()) // b has two, a one
	if diff := cmp.Diff([]string{"b/0", "b/1", "a/3"}, got); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
}

// A namespace that comes back as soon as it is served must not pass for one
// that was not served for long.
func TestWhoComesBackAtOnceGoesToTheEnd(t *testing.T) {
	t.Parallel()
	q := newQueue(1)
	eager := request("eager", 1)
	for i := range 3 {
		q.Add(request("a", i))
		q.Add(request("b", i))
	}
	q.Add(eager)
	var got []string
	for q.Len() > 0 {
		r := take(t, q)
		got = append(got, r.Namespace)
		if r == eager && len(got) < 9 {
			q.Add(eager) // held until Done
		}
		q.Done(r)
	}
	want := []string{"a", "b", "eager", "a", "b", "eager", "a", "b", "eager"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("handed out (-want +got):\n%s", diff)
	}
}

func TestARequestIsNotHandedOutTwiceAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2)
		r := request("a", 1)
		q.Add(r)
		take(t, q)
		q.Add(r)
		again := ends(func() { take(t, q) })
		synctest.Wait()
		if again() {
			t.Error("the request was handed out while a pass over it runs")
		}
		q.Done(r)
		synctest.Wait()
		if !again() {
			t.Error("what was asked for during a pass was lost with its end")
		}
		q.ShutDown()
	})
}

func TestNoMoreAreHandedOutThanThereAreWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		q.Add(request("a", 1))
		q.Add(request("b", 1))
		first := take(t, q)
		second := ends(func() { take(t, q) })
		synctest.Wait()
		if second() {
			t.Fatal("two passes are at work with one worker")
		}
		q.Done(request("c", "of which nobody knows"))
		synctest.Wait()
		if second() {
			t.Fatal("the end of a pass that was not there gave a slot")
		}
		q.Done(first)
		synctest.Wait()
		if !second() {
			t.Error("the slot was lost with the pass")
		}
		q.ShutDown()
	})
}

func TestDelayed(t *testing.T) {
	t.Parallel()
	low := new(handler.LowPriority)
	tests := map[string]struct {
		ask          func(q *Queue, r reconcile.Request)
		wantAfter    time.Duration
		wantPriority int
		wantEvent    bool
	}{
		"an add is an event": {
			ask: func(q *Queue, r reconcile.Request) { q.Add(r) }, wantEvent: true,
		},
		"so is one of low priority": {
			ask:          func(q *Queue, r reconcile.Request) { addLow(q, r) },
			wantPriority: handler.LowPriority, wantEvent: true,
		},
		"a delay of nothing is no delay": {
			ask: func(q *Queue, r reconcile.Request) { q.AddAfter(r, 0) }, wantEvent: true,
		},
		"a timer keeps its priority": {
			ask: func(q *Queue, r reconcile.Request) {
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, Priority: low}, r)
			},
			wantAfter: time.Minute, wantPriority: handler.LowPriority,
		},
		"the earliest time and the highest priority count": {
			ask: func(q *Queue, r reconcile.Request) {
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, Priority: low}, r)
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(3)}, r)
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Second, Priority: low}, r)
			},
			wantAfter: time.Second, wantPriority: 3,
		},
		"an event does not wait for a timer, and takes its priority": {
			ask: func(q *Queue, r reconcile.Request) {
				q.AddAfter(r, time.Hour)
				addLow(q, r)
			},
			wantEvent: true,
		},
		"a timer does not undo an event": {
			ask: func(q *Queue, r reconcile.Request) {
				q.Add(r)
				q.AddAfter(r, time.Hour)
			},
			wantEvent: true,
		},
		"a rate limited request is no event": {
			ask: func(q *Queue, r reconcile.Request) {
				q.AddRateLimited(r)
				q.AddRateLimited(r) // 2 s, later than the first
			},
			wantAfter: time.Second,
		},
		"a rate limited request that is also delayed comes at the earlier of both": {
			ask: func(q *Queue, r reconcile.Request) {
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Minute, RateLimited: true}, r)
			},
			wantAfter: time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(1)
				r := request("a", 1)
				start := time.Now()
				test.ask(q, r)
				got, priority, _ := q.GetWithPriority()
				if after := time.Since(start); got != r || after != test.wantAfter || priority != test.wantPriority {
					t.Errorf("%s came after %s with priority %d, want %s with %d", got, after, priority, test.wantAfter, test.wantPriority)
				}
				if q.Event(r) != test.wantEvent {
					t.Errorf("event: %t, want %t", q.Event(r), test.wantEvent)
				}
				q.Done(r)
				if q.Event(r) {
					t.Error("a pass that has ended is told as an event's")
				}
				q.ShutDown()
			})
		})
	}
}

// A pass asks for the time of the next. What comes in between makes a pass that
// asks anew, so the old time is worth nothing.
func TestAnEventTakesTheTimersPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		r := request("a", 1)
		q.AddAfter(r, time.Minute)
		q.AddAfter(request("a", "later"), time.Hour)
		q.Add(r)
		q.Done(take(t, q))
		start := time.Now()
		if got := take(t, q); got == r || time.Since(start) != time.Hour {
			t.Errorf("%s came after %s: its timer outlived the event", got, time.Since(start))
		}
		q.ShutDown()
	})
}

func TestATimerThatFiresDuringAPassWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1)
		r := request("a", 1)
		q.Add(r)
		take(t, q)
		q.AddAfter(r, time.Second)
		<-time.After(time.Minute)
		if q.Len() != 0 {
			t.Error("a request that cannot be handed out counts as waiting")
		}
		q.Done(r)
		if take(t, q); q.Event(r) {
			t.Error("the timer is told as an event")
		}
		q.ShutDown()
	})
}

func TestForgetEndsBackoff(t *testing.T) {
	t.Parallel()
	q := newQueue(1)
	r := request("a", 1)
	q.AddRateLimited(r)
	q.AddRateLimited(r)
	if got := q.NumRequeues(r); got != 2 {
		t.Errorf("%d requeues, want 2", got)
	}
	q.Forget(r)
	if got := q.NumRequeues(r); got != 0 {
		t.Errorf("%d requeues after Forget, want 0", got)
	}
	q.ShutDown()
}
