package main

import (
	"context"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics are what the operator says of itself at /metrics.
type metrics map[string]*dto.MetricFamily

func scrape(ctx context.Context, url string) (metrics, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	return families, nil
}

// sum adds up the series that carry all the labels, given as name and value in turn.
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, metric := range m[name].GetMetric() {
		if carries(metric, labels) {
			// One of the three is there, the others count 0.
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
		}
	}
	return total
}

func carries(metric *dto.Metric, labels []string) bool {
	have := map[string]string{}
	for _, pair := range metric.GetLabel() {
		have[pair.GetName()] = pair.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if have[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// controller is the one whose passes are counted.
const controller = "storagebucket"

func (m metrics) passes() int {
	return int(m.sum("controller_runtime_reconcile_total", "controller", controller))
}

// queued are the requests that wait or are worked on, of all controllers.
func (m metrics) queued() int {
	return int(m.sum("workqueue_depth") + m.sum("controller_runtime_active_workers"))
}

// waiting are the requests of the controller that wait.
func (m metrics) waiting() int { return int(m.sum("workqueue_depth", "controller", controller)) }

func (m metrics) cpuSeconds() float64   { return m.sum("process_cpu_seconds_total") }
func (m metrics) residentSize() float64 { return m.sum("process_resident_memory_bytes") }
func (m metrics) liveHeap() float64     { return m.sum("go_gc_heap_live_bytes") }
func (m metrics) collections() float64  { return m.sum("go_gc_cycles_total_gc_cycles_total") }
