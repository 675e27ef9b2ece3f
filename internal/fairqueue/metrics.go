package fairqueue

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// watchPeriod is how often unfinished work is measured, as in other queues.
const watchPeriod = 500 * time.Millisecond

// metrics are the queue's series of workqueue_*.
type metrics struct {
	depth               map[lane]prometheus.Gauge
	adds, retries       prometheus.Counter
	latency, work       prometheus.Observer
	unfinished, longest prometheus.Gauge
}

// newMetrics finds the metrics that controller-runtime has registered for its
// own queues. It offers no way to them but the registry, which tells of an equal
// that it has already: equal in name, labels and help.
func newMetrics(r prometheus.Registerer, name string) metrics {
	gauge := func(key, help string, labels ...string) *prometheus.GaugeVec {
		return registered(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help,
		}, append([]string{"name", "controller"}, labels...)))
	}
	counter := func(key, help string) prometheus.Counter {
		return registered(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help,
		}, []string{"name", "controller"})).WithLabelValues(name, name)
	}
	histogram := func(key, help string) prometheus.Observer {
		return registered(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: ctrlmetrics.WorkQueueSubsystem, Name: key, Help: help,
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"name", "controller"})).WithLabelValues(name, name)
	}
	// Two values of priority, whatever is asked for: a label must not have many.
	depth := gauge(ctrlmetrics.DepthKey, "Current depth of workqueue by workqueue and priority", "priority")
	return metrics{
		depth: map[lane]prometheus.Gauge{
			high: depth.WithLabelValues(name, name, "0"),
			low:  depth.WithLabelValues(name, name, strconv.Itoa(handler.LowPriority)),
		},
		adds: counter(ctrlmetrics.AddsKey, "Total number of adds handled by workqueue"),
		retries: counter(ctrlmetrics.RetriesKey,
			"Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit RequeueAfter or AddAfter calls)"),
		latency: histogram(ctrlmetrics.QueueLatencyKey,
			"How long in seconds an item stays in workqueue before being requested"),
		work: histogram(ctrlmetrics.WorkDurationKey, "How long in seconds processing an item from workqueue takes."),
		unfinished: gauge(ctrlmetrics.UnfinishedWorkKey, "How many seconds of work has been done that "+
			"is in progress and hasn't been observed by work_duration. Large "+
			"values indicate stuck threads. One can deduce the number of stuck "+
			"threads by observing the rate at which this increases.").WithLabelValues(name, name),
		longest: gauge(ctrlmetrics.LongestRunningProcessorKey, "How many seconds has the longest running "+
			"processor for workqueue been running.").WithLabelValues(name, name),
	}
}

// registered registers a collector, or finds its equal that is registered.
func registered[C prometheus.Collector](r prometheus.Registerer, c C) C {
	err := r.Register(c)
	if err == nil {
		return c
	}
	if already, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if equal, ok := already.ExistingCollector.(C); ok {
			return equal
		}
	}
	panic(err)
}

// watch has unfinished work measured from now on, until there is none.
func (q *Queue) watch() {
	if !q.watching {
		q.watching = true
		q.clock.AfterFunc(watchPeriod, q.measure)
	}
}

func (q *Queue) measure() {
	q.mu.Lock()
	defer q.mu.Unlock()
	var sum, longest time.Duration
	for _, p := range q.running {
		age := q.clock.Since(p.started)
		sum, longest = sum+age, max(longest, age)
	}
	q.metrics.unfinished.Set(sum.Seconds())
	q.metrics.longest.Set(longest.Seconds())
	q.watching = false
	if len(q.running) > 0 {
		q.watch()
	}
}
