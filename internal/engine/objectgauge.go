package engine

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// gaugeTimeout bounds how long a scrape waits for a cache that is being filled.
	gaugeTimeout = time.Second
	// maxReasons bounds the series of a kind for each status of Ready, whatever
	// somebody may have written into statuses.
	maxReasons = 50
	// otherReasons stands for the reasons beyond maxReasons.
	otherReasons = "Other"
)

// ObjectGauge is bucketoperator_objects: how many objects of each kind there
// are by the status and reason of Ready. It counts what is in the cache at each
// scrape, so that it is right from the first on, and nothing is left of objects
// that are gone. A standby counts the same objects as the leader.
type ObjectGauge struct {
	ctx     context.Context // a scrape has none of its own
	objects client.Reader
	lists   map[string]func() client.ObjectList
	desc    *prometheus.Desc
}

var _ prometheus.Collector = (*ObjectGauge)(nil)

// NewObjectGauge counts, until ctx ends, the objects in lists, which makes an
// empty list of each kind. The kinds must implement Object. objects must be a
// reader of a cache.
func NewObjectGauge(ctx context.Context, objects client.Reader, lists map[string]func() client.ObjectList) *ObjectGauge {
	return &ObjectGauge{
		ctx: ctx, objects: objects, lists: lists,
		desc: prometheus.NewDesc("bucketoperator_objects",
			"How many objects there are, by kind and by the status and reason of their condition Ready.",
			[]string{"kind", "ready", "reason"}, nil),
	}
}

// Describe sends the metric's description.
func (g *ObjectGauge) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- g.desc }

// Collect sends the counts. It leaves out a kind whose cache is not filled yet.
func (g *ObjectGauge) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.ctx, gaugeTimeout)
	defer cancel()
	for kind, newList := range g.lists {
		list := newList()
		if err := g.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			logf.FromContext(g.ctx).V(1).Info("Not counting objects", "kind", kind, "error", err.Error())
			continue
		}
		for of, count := range countByReadiness(list) {
			metrics <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(count), kind, string(of.status), of.reason)
		}
	}
}

// readiness is the part of Ready that objects are counted by.
type readiness struct {
	status metav1.ConditionStatus
	reason string
}

func countByReadiness(list client.ObjectList) map[readiness]int {
	counts := map[readiness]int{}
	reasons := map[metav1.ConditionStatus]int{}
	// The function never fails, and a client.ObjectList always has items.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		of := readinessOf(item.(Object))
		if _, known := counts[of]; !known {
			if reasons[of.status] == maxReasons {
				of.reason = otherReasons
			} else {
				reasons[of.status]++
			}
		}
		counts[of]++
		return nil
	})
	return counts
}

func readinessOf(object Object) readiness {
	if ready := meta.FindStatusCondition(object.GetConditions(), ConditionReady); ready != nil {
		return readiness{ready.Status, ready.Reason}
	}
	return readiness{metav1.ConditionUnknown, ReasonPending}
}
