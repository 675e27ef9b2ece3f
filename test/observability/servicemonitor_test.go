package observability_test

import (
	"os"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func TestServiceMonitorFindsTheMetricsService(t *testing.T) {
	t.Parallel()
	monitor := &monitoringv1.ServiceMonitor{}
	readManifest(t, monitor, "servicemonitor.yaml")
	text, err := os.ReadFile(inModule(t, "config", "manager", "metrics_service.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{}
	if err := yaml.UnmarshalStrict(text, service); err != nil {
		t.Fatal(err)
	}

	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(service.Labels)) {
		t.Errorf("the ServiceMonitor selects %s, and the Service has %v", selector, service.Labels)
	}
	for _, endpoint := range monitor.Spec.Endpoints {
		if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == endpoint.Port }) {
			t.Errorf("the Service has no port %q", endpoint.Port)
		}
	}
	if job := service.Labels[monitor.Spec.JobLabel]; job != "bucketoperator" {
		t.Errorf("the metrics get the label job=%q, and the alerts select on bucketoperator", job)
	}
	if monitor.Namespace != service.Namespace {
		t.Errorf("the ServiceMonitor is in the namespace %s, the Service in %s", monitor.Namespace, service.Namespace)
	}
}
