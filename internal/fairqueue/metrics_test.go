package fairqueue

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// runs gives each run of a test series of its own: controller-runtime's
// registry is shared by all.
var runs atomic.Int64

// Alerts and dashboards go by these names and labels. controller-runtime has
// registered them before; the queue shares them with other controllers'.
func TestMetricsAreThoseOfOtherQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		name := fmt.Sprintf("metrics-of-other-queues-%d", runs.Add(1))
		q := New(Options{
			Name: name, Workers: 2, Clock: clock.RealClock{}, Registerer: ctrlmetrics.Registry,
			RateLimiter: workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](),
		})
		q.Add(request("a", 1))
		q.Add(request("a", 2))
		q.Add(request("a", 3))
		addLow(q, request("a", 4), request("b", 1))
		q.Add(request("b", 1)) // is of high priority now
		q.AddAfter(request("a", 5), time.Hour)
		<-time.After(2 * time.Second)
		a1, b1 := take(t, q), take(t, q)
		<-time.After(3 * time.Second)
		q.Done(a1)
		<-time.After(time.Second)

		want := `workqueue_adds_total 5
workqueue_depth{priority="-100"} 1
workqueue_depth{priority="0"} 2
workqueue_longest_running_processor_seconds 4
workqueue_queue_duration_seconds 2 of 4
workqueue_retries_total 1
workqueue_unfinished_work_seconds 4
workqueue_work_duration_seconds 1 of 3
`
		if diff := cmp.Diff(want, gathered(t, ctrlmetrics.Registry, name)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		q.Done(b1)
		<-time.After(time.Second)
		if got := gathered(t, ctrlmetrics.Registry, name); !strings.Contains(got, "workqueue_unfinished_work_seconds 0\n") {
			t.Errorf("work is told as unfinished when there is none:\n%s", got)
		}
		q.ShutDown()
	})
}

// gathered is what a registry has of a queue, in brief.
func gathered(t *testing.T, from prometheus.Gatherer, queue string) string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "workqueue_") {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["name"] != queue || labels["controller"] != queue {
				continue
			}
			b.WriteString(family.GetName())
			if p, ok := labels["priority"]; ok {
				b.WriteString(`{priority="` + p + `"}`)
			}
			switch h := m.GetHistogram(); {
			case h != nil:
				b.WriteString(" " + number(float64(h.GetSampleCount())) + " of " + number(h.GetSampleSum()) + "\n")
			case m.GetCounter() != nil:
				b.WriteString(" " + number(m.GetCounter().GetValue()) + "\n")
			default:
				b.WriteString(" " + number(m.GetGauge().GetValue()) + "\n")
			}
		}
	}
	return b.String()
}

func TestCollectorTellsOfTheTenDeepestBacklogs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		queues := []*Queue{newQueue(1), newQueue(1)}
		queues[1].name = "other" // two controllers' queues are registered side by side
		for _, q := range queues {
			if err := registry.Register(q); err != nil {
				t.Fatal(err)
			}
		}
		q := queues[0]
		// a waits for a slot again, and is told of with that.
		q.Add(request("a", 1))
		resume := q.Yield(take(t, q))
		q.Add(request("blocker", 1))
		take(t, q)
		go resume()
		<-time.After(time.Second)
		for n := range 12 {
			for i := range 12 - n + 1 {
				addLow(q, request(string(rune('b'+n)), i))
			}
			<-time.After(time.Second)
		}
		q.Add(request("a", 2))
		for i := range 20 {
			q.Add(request("a", i))
		}
		<-time.After(time.Second)
		want := `# HELP bucketoperator_queue_oldest_wait_seconds How long the pass has waited for a worker that has waited longest, of the ten namespaces that have the most waiting.
# TYPE bucketoperator_queue_oldest_wait_seconds gauge
bucketoperator_queue_oldest_wait_seconds{controller="subject",namespace="a"} 14
`
		for n := range 9 {
			want += `bucketoperator_queue_oldest_wait_seconds{controller="subject",namespace="` + string(rune('b'+n)) + `"} ` + number(float64(13-n)) + "\n"
		}
		want += `# HELP bucketoperator_queue_waiting_passes How many passes over a namespace's objects wait for a worker, of the ten namespaces that have the most.
# TYPE bucketoperator_queue_waiting_passes gauge
bucketoperator_queue_waiting_passes{controller="subject",namespace="a"} 20
`
		for n := range 9 {
			want += `bucketoperator_queue_waiting_passes{controller="subject",namespace="` + string(rune('b'+n)) + `"} ` + number(float64(13-n)) + "\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		q.ShutDown()
	})
}
