package engine

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// gaugeTimeout bounds how long a scrape waits for a cache that is being filled.
const gaugeTimeout = time.Second

// ObjectGauge tells of the objects of each kind:
//
//   - bucketoperator_objects is how many there are by the status and reason of Ready;
//   - bucketoperator_oldest_not_ready_timestamp_seconds is since when the one of
//     them is not ready that has not been so for longest, deletions aside;
//   - bucketoperator_oldest_deletion_timestamp_seconds is when the deletion was
//     asked for that has been under way for longest.
//
// The two times are missing while there is no such object. All look at what is
// in the cache at each scrape, so that they are right from the first on, and
// nothing is left of objects that are gone. A standby tells the same as the leader.
type ObjectGauge struct {
	ctx                       context.Context // a scrape has none of its own
	objects                   client.Reader
	lists                     map[string]func() client.ObjectList
	count, notReady, deletion *prometheus.Desc
}

var _ prometheus.Collector = (*ObjectGauge)(nil)

// NewObjectGauge tells, until ctx ends, of the objects in lists, which makes an
// empty list of each kind. The kinds must implement Object. objects must be a
// reader of a cache.
func NewObjectGauge(ctx context.Context, objects client.Reader, lists map[string]func() client.ObjectList) *ObjectGauge {
	return &ObjectGauge{
		ctx: ctx, objects: objects, lists: lists,
		count: prometheus.NewDesc("bucketoperator_objects",
			"How many objects there are, by kind and by the status and reason of their condition Ready.",
			[]string{"kind", "ready", "reason"}, nil),
		notReady: prometheus.NewDesc("bucketoperator_oldest_not_ready_timestamp_seconds",
			"Since when the object is not ready that has not been so for longest, by kind and by the status and reason of Ready; without those being deleted.",
			[]string{"kind", "ready", "reason"}, nil),
		deletion: prometheus.NewDesc("bucketoperator_oldest_deletion_timestamp_seconds",
			"When the deletion was asked for that has been under way for longest, by kind.",
			[]string{"kind"}, nil),
	}
}

// Describe sends the metrics' descriptions.
func (g *ObjectGauge) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- g.count
	descriptions <- g.notReady
	descriptions <- g.deletion
}

// Collect sends the metrics. It leaves out a kind whose cache is not filled yet.
func (g *ObjectGauge) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(g.ctx, gaugeTimeout)
	defer cancel()
	for kind, newList := range g.lists {
		list := newList()
		if err := g.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			logf.FromContext(g.ctx).V(1).Info("Not counting objects", "kind", kind, "error", err.Error())
			continue
		}
		g.send(metrics, kind, objectStatsOf(list))
	}
}

func (g *ObjectGauge) send(metrics chan<- prometheus.Metric, kind string, c *objectStats) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for of, count := range c.counts {
		gauge(g.count, float64(count), kind, string(of.status), of.reason)
	}
	for of, since := range c.notReady {
		gauge(g.notReady, float64(since.Unix()), kind, string(of.status), of.reason)
	}
	if !c.deletion.IsZero() {
		gauge(g.deletion, float64(c.deletion.Unix()), kind)
	}
}

func objectStatsOf(list client.ObjectList) *objectStats {
	c := newObjectStats()
	// The function never fails, and a client.ObjectList always has items.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		c.add(item.(Object))
		return nil
	})
	return c
}
