package fairqueue

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxNamespaces bounds the series of a controller: the namespaces told of are
// those that have the most waiting when the metrics are asked for.
const maxNamespaces = 10

// backlog is what a namespace has waiting.
type backlog struct {
	namespace string
	waiting   int
	oldest    time.Time
}

// Describe sends the descriptions of the metrics that tell who waits:
// bucketoperator_queue_waiting_passes and bucketoperator_queue_oldest_wait_seconds.
// The caller registers the queue, each under its own name.
func (q *Queue) Describe(descriptions chan<- *prometheus.Desc) {
	waiting, oldest := q.descriptions()
	descriptions <- waiting
	descriptions <- oldest
}

// Collect sends the metrics.
func (q *Queue) Collect(metrics chan<- prometheus.Metric) {
	waiting, oldest := q.descriptions()
	gauge := func(desc *prometheus.Desc, value float64, namespace string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, namespace)
	}
	for _, b := range q.backlogs() {
		gauge(waiting, float64(b.waiting), b.namespace)
		gauge(oldest, max(0, q.clock.Since(b.oldest).Seconds()), b.namespace)
	}
}

func (q *Queue) descriptions() (waiting, oldest *prometheus.Desc) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"namespace"}, prometheus.Labels{"controller": q.name})
	}
	return desc("bucketoperator_queue_waiting_passes",
			"How many passes over a namespace's objects wait for a worker, of the ten namespaces that have the most."),
		desc("bucketoperator_queue_oldest_wait_seconds",
			"How long the pass has waited for a worker that has waited longest, of the ten namespaces that have the most waiting.")
}

// backlogs are those of the namespaces that have the most waiting.
func (q *Queue) backlogs() []backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	var most []backlog
	for namespace, s := range q.lines.shares {
		b := backlog{namespace: namespace, waiting: s.waiting()}
		if b.waiting == 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(most, b, func(x, y backlog) int {
			return cmp.Or(cmp.Compare(y.waiting, x.waiting), cmp.Compare(x.namespace, y.namespace))
		})
		if at == maxNamespaces {
			continue
		}
		for l := range s.lines {
			// Each line is in the order in which its passes got their place.
			if first := s.lines[l].Front(); first != nil {
				if since := first.Value.(*pass).since; b.oldest.IsZero() || since.Before(b.oldest) {
					b.oldest = since
				}
			}
		}
		most = slices.Insert(most, at, b)
		most = most[:min(len(most), maxNamespaces)]
	}
	return most
}
