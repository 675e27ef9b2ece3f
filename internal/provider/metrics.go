package provider

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tells how long calls to providers took, as the histogram
// bucketoperator_provider_call_duration_seconds.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers the histogram with registerer.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "bucketoperator_provider_call_duration_seconds",
		Help: "How long calls to bucket providers took. The code is the answer's HTTP status, " +
			"or error, timeout, or throttled (not made, as a limit of the operator was reached).",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"operation", "provider_type", "code"})
	if err := registerer.Register(duration); err != nil {
		return nil, fmt.Errorf("registering the provider metric: %w", err)
	}
	return &Metrics{duration: duration}, nil
}

// Observer records the calls to providers of one type. Operation and code must
// come from small, fixed sets: they are labels.
func (m *Metrics) Observer(providerType string) func(operation, code string, seconds float64) {
	return func(operation, code string, seconds float64) {
		m.duration.WithLabelValues(operation, providerType, code).Observe(seconds)
	}
}
