package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// counted is an Object that only has conditions.
type counted struct {
	metav1.PartialObjectMetadata
	conditions []metav1.Condition
}

func (c *counted) DeepCopyObject() runtime.Object      { panic("counting must not copy") }
func (c *counted) GetConditions() []metav1.Condition   { return c.conditions }
func (c *counted) SetConditions(cs []metav1.Condition) { c.conditions = cs }
func (c *counted) GetObservedGeneration() int64        { return 0 }
func (c *counted) SetObservedGeneration(int64)         {}
func ready(status metav1.ConditionStatus, reason string) counted {
	return counted{conditions: []metav1.Condition{{Type: "Other"}, {Type: ConditionReady, Status: status, Reason: reason}}}
}

type countedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []counted
}

func (l *countedList) DeepCopyObject() runtime.Object { panic("counting must not copy") }

// cacheOf is a reader with these objects, or with an error.
type cacheOf struct {
	client.Reader
	items []counted
	err   error
}

func (c *cacheOf) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*countedList).Items = c.items
	return c.err
}

func gaugeOf(t *testing.T, cache *cacheOf) *ObjectGauge {
	t.Helper()
	return NewObjectGauge(t.Context(), cache, map[string]func() client.ObjectList{
		"Thing": func() client.ObjectList { return &countedList{} },
	})
}

func TestObjectGaugeCountsByStatusAndReasonOfReady(t *testing.T) {
	t.Parallel()
	cache := &cacheOf{items: []counted{
		ready(metav1.ConditionTrue, "Available"), ready(metav1.ConditionTrue, "Available"),
		ready(metav1.ConditionFalse, "Unauthorized"),
		{},
	}}
	gauge := gaugeOf(t, cache)
	const want = `
# HELP bucketoperator_objects How many objects there are, by kind and by the status and reason of their condition Ready.
# TYPE bucketoperator_objects gauge
bucketoperator_objects{kind="Thing",ready="True",reason="Available"} 2
bucketoperator_objects{kind="Thing",ready="False",reason="Unauthorized"} 1
bucketoperator_objects{kind="Thing",ready="Unknown",reason="Pending"} 1
`
	if err := testutil.CollectAndCompare(gauge, strings.NewReader(want), "bucketoperator_objects"); err != nil {
		t.Error(err)
	}
	cache.items = nil
	if n := testutil.CollectAndCount(gauge); n != 0 {
		t.Errorf("%d series of objects that are gone", n)
	}
}

func TestObjectGaugeTellsTheOldestOfWhatIsNotReadyOrGoing(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }
	notReadySince := func(seconds int64, reason string) counted {
		c := ready(metav1.ConditionFalse, reason)
		c.conditions[1].LastTransitionTime = at(seconds)
		return c
	}
	deletedAt := func(seconds int64) counted {
		c, when := notReadySince(1, ReasonDeleting), at(seconds)
		c.DeletionTimestamp = &when
		return c
	}
	unseen := counted{}
	unseen.CreationTimestamp = at(700)
	cache := &cacheOf{items: []counted{
		notReadySince(500, "Unauthorized"), notReadySince(400, "Unauthorized"), notReadySince(600, "SpecRefused"),
		ready(metav1.ConditionTrue, "Available"), unseen, deletedAt(900), deletedAt(800),
	}}
	const want = `
# HELP bucketoperator_oldest_deletion_timestamp_seconds When the deletion was asked for that has been under way for longest, by kind.
# TYPE bucketoperator_oldest_deletion_timestamp_seconds gauge
bucketoperator_oldest_deletion_timestamp_seconds{kind="Thing"} 800
# HELP bucketoperator_oldest_not_ready_timestamp_seconds Since when the object is not ready that has not been so for longest, by kind and by the status and reason of Ready; without those being deleted.
# TYPE bucketoperator_oldest_not_ready_timestamp_seconds gauge
bucketoperator_oldest_not_ready_timestamp_seconds{kind="Thing",ready="False",reason="SpecRefused"} 600
bucketoperator_oldest_not_ready_timestamp_seconds{kind="Thing",ready="False",reason="Unauthorized"} 400
bucketoperator_oldest_not_ready_timestamp_seconds{kind="Thing",ready="Unknown",reason="Pending"} 700
`
	err := testutil.CollectAndCompare(gaugeOf(t, cache), strings.NewReader(want),
		"bucketoperator_oldest_deletion_timestamp_seconds", "bucketoperator_oldest_not_ready_timestamp_seconds")
	if err != nil {
		t.Error(err)
	}
}

func TestObjectGaugeBoundsItsSeries(t *testing.T) {
	t.Parallel()
	cache := &cacheOf{}
	for i := range 2 * maxReasons {
		cache.items = append(cache.items, ready(metav1.ConditionFalse, fmt.Sprintf("Reason%d", i)))
	}
	gauge := gaugeOf(t, cache)
	for _, name := range []string{"bucketoperator_objects", "bucketoperator_oldest_not_ready_timestamp_seconds"} {
		if n := testutil.CollectAndCount(gauge, name); n != maxReasons+1 {
			t.Errorf("%d series of %s, want %d and one for the rest", n, name, maxReasons)
		}
	}
}

func TestObjectGaugeOfACacheThatIsNotFilledIsEmpty(t *testing.T) {
	t.Parallel()
	if n := testutil.CollectAndCount(gaugeOf(t, &cacheOf{err: errors.New("not started")})); n != 0 {
		t.Errorf("%d series, want none", n)
	}
}
