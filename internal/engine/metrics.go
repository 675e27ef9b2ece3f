package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what passes are measured by.
type Metrics struct {
	timeToReady    *prometheus.HistogramVec
	timeInDeletion *prometheus.HistogramVec
}

// NewMetrics registers the engine's metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	buckets := []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
	m := &Metrics{
		timeToReady: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "bucketoperator_time_to_ready_seconds",
			Help:    "How long an object was not ready before it became so: since its creation or, later, since it ceased to be ready.",
			Buckets: buckets,
		}, []string{"kind"}),
		timeInDeletion: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "bucketoperator_time_in_deletion_seconds",
			Help:    "How long an object took from the request to delete it until the operator let it go.",
			Buckets: buckets,
		}, []string{"kind"}),
	}
	registry.MustRegister(m.timeToReady, m.timeInDeletion)
	return m
}

func (m *Metrics) ready(kind string, after time.Duration) {
	if m != nil {
		m.timeToReady.WithLabelValues(kind).Observe(after.Seconds())
	}
}

func (m *Metrics) deleted(kind string, after time.Duration) {
	if m != nil {
		m.timeInDeletion.WithLabelValues(kind).Observe(after.Seconds())
	}
}
