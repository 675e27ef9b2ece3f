package fairqueue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxTold is how many namespaces of a queue the metrics tell of.
const maxTold = 10

// Backlogs tells which namespaces wait for workers: of each queue the ten whose
// oldest object has waited longest. All others stay out, so that the number of
// series does not follow the number of namespaces.
type Backlogs struct {
	mu     sync.Mutex
	queues map[string]*order

	depth, oldest, working *prometheus.Desc
}

var _ prometheus.Collector = (*Backlogs)(nil)

// NewBacklogs tells of the queues that are made with it.
func NewBacklogs() *Backlogs {
	labels := []string{"controller", "namespace"}
	return &Backlogs{
		queues: map[string]*order{},
		depth: prometheus.NewDesc("bucketoperator_queue_depth",
			"How many objects of a namespace wait for a worker, for the ten namespaces of each controller that have waited longest.", labels, nil),
		oldest: prometheus.NewDesc("bucketoperator_queue_oldest_seconds",
			"How long the object of a namespace that has waited longest for a worker has waited, for the same namespaces.", labels, nil),
		working: prometheus.NewDesc("bucketoperator_queue_passes",
			"How many passes of a namespace are under way, those that wait for an answer from outside included, for the same namespaces.", labels, nil),
	}
}

func (b *Backlogs) add(name string, o *order) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[name] = o
}

// Describe sends the metrics' descriptions.
func (b *Backlogs) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- b.depth
	descriptions <- b.oldest
	descriptions <- b.working
}

// Collect sends the metrics.
func (b *Backlogs) Collect(metrics chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, o := range b.queues {
		for _, told := range o.backlog() {
			gauge := func(desc *prometheus.Desc, value float64) {
				metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, name, told.namespace)
			}
			gauge(b.depth, float64(told.depth))
			gauge(b.oldest, told.oldest.Seconds())
			gauge(b.working, float64(told.passes))
		}
	}
}

// backlog is what of a namespace waits.
type backlog struct {
	namespace     string
	depth, passes int
	oldest        time.Duration
}

// backlog are the namespaces that have waited longest.
func (o *order) backlog() []backlog {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []backlog
	for _, t := range o.tenants {
		told := backlog{namespace: t.namespace, depth: t.items[urgent].Len() + t.items[routine].Len(), passes: t.passes}
		for _, rank := range []rank{urgent, routine} {
			if front := t.items[rank].Front(); front != nil {
				told.oldest = max(told.oldest, o.clock.Since(front.Value.(*item).since))
			}
		}
		if told.depth > 0 {
			all = append(all, told)
		}
	}
	slices.SortFunc(all, func(a, b backlog) int {
		return cmp.Or(cmp.Compare(b.oldest, a.oldest), cmp.Compare(b.depth, a.depth), cmp.Compare(a.namespace, b.namespace))
	})
	return all[:min(len(all), maxTold)]
}
