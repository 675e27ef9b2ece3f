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
	if err := testutil.CollectAndCompare(gauge, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	cache.items = nil
	if n := testutil.CollectAndCount(gauge); n != 0 {
		t.Errorf("%d series of objects that are gone", n)
	}
}

func TestObjectGaugeBoundsItsSeries(t *testing.T) {
	t.Parallel()
	cache := &cacheOf{}
	for i := range 2 * maxReasons {
		cache.items = append(cache.items, ready(metav1.ConditionFalse, fmt.Sprintf("Reason%d", i)))
	}
	if n := testutil.CollectAndCount(gaugeOf(t, cache)); n != maxReasons+1 {
		t.Errorf("%d series, want %d and one for the rest", n, maxReasons)
	}
}

func TestObjectGaugeOfACacheThatIsNotFilledIsEmpty(t *testing.T) {
	t.Parallel()
	if n := testutil.CollectAndCount(gaugeOf(t, &cacheOf{err: errors.New("not started")})); n != 0 {
		t.Errorf("%d series, want none", n)
	}
}
