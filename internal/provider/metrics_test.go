package provider

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestMetricsHaveTheNameAndLabelsOfTheContract(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	metrics.Observer("HTTP")("create", "201", 0.3)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 1 || families[0].GetName() != "bucketoperator_provider_call_duration_seconds" {
		t.Fatalf("gathered %v", families)
	}
	labels := map[string]string{}
	for _, label := range families[0].GetMetric()[0].GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	if labels["operation"] != "create" || labels["provider_type"] != "HTTP" || labels["code"] != "201" {
		t.Errorf("labels = %v", labels)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registering twice went through without an error")
	}
}
