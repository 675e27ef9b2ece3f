package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secrets is the resource whose objects may hold secrets.
const secrets = "secrets"

// snapshot is the state of the namespace and of the outside, without what has
// to differ between two runs: times, versions, uids, ids, marks.
func (r *Execution) snapshot() string {
	mask := r.masks()
	var parts []string
	for _, resource := range r.adapter.Resources {
		for _, object := range r.recorder.all(resource.Name) {
			parts = append(parts, resource.Name+" "+mask.Replace(plain(r, resource.Name, object)))
		}
	}
	for _, item := range r.Outside.Inventory() {
		parts = append(parts, "outside "+mask.Replace(item.State))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// masks replaces what differs by what it stands for.
func (r *Execution) masks() *strings.Replacer {
	pairs := append([]string{r.Namespace, "NAMESPACE"}, r.Outside.Masks()...)
	for _, resource := range r.adapter.Resources {
		if !resource.Reconciled {
			continue
		}
		for name, object := range r.recorder.all(resource.Name) {
			if mark := r.adapter.MarkOf(metadataFrom(object)); mark != "" {
				pairs = append(pairs, mark, "mark-of-nothing")
			}
			pairs = append(pairs, string(object.GetUID()), "uid-of-"+name)
		}
	}
	return strings.NewReplacer(pairs...)
}

// plain is an object as indented JSON, without what the API server makes up.
func plain(r *Execution, resource string, object client.Object) string {
	raw, err := json.Marshal(object)
	if err != nil {
		r.T.Fatal(err)
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		r.T.Fatal(err)
	}
	meta := fields["metadata"].(map[string]any)
	generation := fmt.Sprint(meta["generation"])
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "deletionTimestamp"} {
		if _, ok := meta[key]; ok && key == "deletionTimestamp" {
			meta["deletionTimestamp"] = "set"
			continue
		}
		delete(meta, key)
	}
	if status, ok := fields["status"].(map[string]any); ok {
		plainStatus(status, generation)
	}
	if data, ok := fields["data"].(map[string]any); ok && resource == secrets {
		for key, value := range readable(data) {
			data[key] = value
		}
	}
	if spec, ok := fields["spec"].(map[string]any); ok && resource == "services" {
		delete(spec, "clusterIPs")
	}
	r.adapter.Mask(resource, fields)
	out, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		r.T.Fatal(err)
	}
	return string(out)
}

// readable undoes base64.
func readable(data map[string]any) map[string]string {
	decoded := map[string]string{}
	for key, value := range data {
		var raw []byte
		if json.Unmarshal([]byte(fmt.Sprintf("%q", value)), &raw) == nil {
			decoded[key] = string(raw)
		}
	}
	return decoded
}

// plainStatus takes times out, and puts
// generations in relation to the object's.
func plainStatus(status map[string]any, generation string) {
	current := func(fields map[string]any) {
		if fmt.Sprint(fields["observedGeneration"]) == generation {
			fields["observedGeneration"] = "current"
		}
	}
	current(status)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		condition := c.(map[string]any)
		delete(condition, "lastTransitionTime")
		if condition["type"] == "Ready" {
			current(condition)
		} else {
			delete(condition, "observedGeneration") // that of the pass in which its step ran
		}
	}
	slices.SortFunc(conditions, func(a, b any) int {
		return strings.Compare(fmt.Sprint(a.(map[string]any)["type"]), fmt.Sprint(b.(map[string]any)["type"]))
	})
}

// difference is what differs between two snapshots; empty when nothing does.
func difference(want, have string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(have, "\n"))
}

// checkOneToOne: there is something outside for each object that says so, and no more.
func (r *Execution) checkOneToOne() {
	const oracle = "4 one to one"
	byMark := map[string]string{}
	for _, item := range r.Outside.Inventory() {
		if item.Mark == "" {
			r.violation.add(oracle, item.ID+" outside bears no mark")
		}
		byMark[item.Mark] = item.ID
	}
	for name, object := range r.recorder.all(r.adapter.Subject.Resource) {
		mark := r.adapter.MarkOf(metadataFrom(object))
		if id := r.adapter.IDOf(object); id != "" && byMark[mark] != id {
			r.violation.add(oracle, fmt.Sprintf("%s has id %q, its mark made %q", name, id, byMark[mark]))
		}
		delete(byMark, mark)
	}
	for mark, id := range byMark {
		r.violation.add(oracle, fmt.Sprintf("%s outside, made with %s, belongs to no object", id, mark))
	}
}

// nothingLeft: after the teardown there is nothing, outside or in the namespace.
func nothingLeft(r *Execution) []string {
	var found []string
	for _, item := range r.Outside.Inventory() {
		found = append(found, item.ID+" is still there outside")
	}
	for _, resource := range r.adapter.Resources {
		for name := range r.recorder.all(resource.Name) {
			found = append(found, resource.Name+"/"+name+" is still there")
		}
	}
	return found
}
