package faults

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkReady judges a revision of the subject at the moment that it is seen: one
// that says Ready at its generation can be used, with what is published, and is
// as its spec wants it.
func (r *Execution) checkReady(resource string, object client.Object) {
	if resource != r.adapter.Subject.Resource || !object.GetDeletionTimestamp().IsZero() {
		return
	}
	if observed, known := observedGeneration(object); known && observed != object.GetGeneration() {
		return
	}
	if !meta.IsStatusConditionTrue(conditionsOf(object), "Ready") {
		return
	}
	for _, message := range r.adapter.Usable(r, object) {
		r.violation.add("10 Ready is true", fmt.Sprintf("at resourceVersion %s: %s", object.GetResourceVersion(), message))
	}
}

// generationsGrow: observedGeneration never goes back, nor beyond the generation.
func generationsGrow(r *Execution) []string {
	var found []string
	last := map[string]int64{}
	for _, revision := range r.recorder.revisions() {
		observed, known := observedGeneration(revision.Object)
		if !known {
			continue
		}
		uid := string(revision.Object.GetUID())
		if observed < last[uid] || observed > revision.Object.GetGeneration() {
			found = append(found, fmt.Sprintf("%s %s: observedGeneration %d after %d, at generation %d",
				revision.Resource, revision.Object.GetName(), observed, last[uid], revision.Object.GetGeneration()))
		}
		last[uid] = observed
	}
	return found
}

// observedGeneration is the status's, false for a kind that has none.
func observedGeneration(object client.Object) (int64, bool) {
	field := statusField(object, "ObservedGeneration")
	if !field.IsValid() || !field.CanInt() {
		return 0, false
	}
	return field.Int(), true
}

// conditionsOf are the status's, none for a kind that has none.
func conditionsOf(object client.Object) []metav1.Condition {
	field := statusField(object, "Conditions")
	if !field.IsValid() {
		return nil
	}
	conditions, _ := reflect.TypeAssert[[]metav1.Condition](field)
	return conditions
}

func statusField(object client.Object, name string) reflect.Value {
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	if !status.IsValid() || status.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return status.FieldByName(name)
}
