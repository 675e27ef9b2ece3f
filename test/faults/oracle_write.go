package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// preconditions: a delete names the uid that it means, a write to an object
// that others write to names the version that it builds on, and what the
// operator makes or changes besides is its own.
func preconditions(r *Execution) []string {
	var found []string
	for _, event := range r.gate.trace() {
		if event.Outside() || event.Read || event.Extra {
			continue
		}
		sent := MetadataOf(event.Request)
		switch event.Effect.Verb {
		case http.MethodDelete:
			var options struct {
				Preconditions struct {
					UID string `json:"uid"`
				} `json:"preconditions"`
			}
			if _ = json.Unmarshal(event.Request, &options); options.Preconditions.UID == "" {
				found = append(found, "a delete without a uid: "+event.String())
			}
		case http.MethodPut:
			if sent.ResourceVersion == "" {
				found = append(found, "an update without a resourceVersion: "+event.String())
			}
		case http.MethodPatch:
			if sent.ResourceVersion == "" && sent.UID == "" {
				found = append(found, "a patch without a resourceVersion or uid: "+event.String())
			}
		}
		if message := owned(r.adapter.Children, event); message != "" {
			found = append(found, message)
		}
	}
	return found
}

// owned says what is wrong with a write to an object that has to be the operator's.
func owned(children []Object, event Event) string {
	child := slices.ContainsFunc(children, func(o Object) bool { return o.String() == event.Effect.Target() })
	if !child || event.Status == 0 || event.Status >= 300 || event.Effect.Verb == http.MethodDelete {
		return ""
	}
	for _, owner := range MetadataOf(event.Response).OwnerReferences {
		if owner.Controller {
			return ""
		}
	}
	return "wrote to an object that nobody controls: " + event.String()
}

// noEmptyWrites: no write leaves everything as it was, not even by a new
// version that differs in nothing.
func noEmptyWrites(r *Execution) []string {
	var found []string
	known := map[string]int{} // when a version of an object was first answered with
	for _, event := range byEnd(r.gate.trace()) {
		if event.Outside() || event.Read || event.Status == 0 || event.Status >= 300 {
			continue
		}
		object := MetadataOf(event.Response)
		version := object.UID + "@" + object.ResourceVersion
		at, seen := known[version]
		based := MetadataOf(event.Request).ResourceVersion
		released := object.DeletionTimestamp != nil && len(object.Finalizers) == 0 // the write that lets an object go makes no version
		if !event.Extra && !released && event.Effect.Verb != http.MethodDelete && (seen && at < event.Begin || based != "" && based == object.ResourceVersion) {
			found = append(found, "the write changed nothing: "+event.String())
		}
		if !seen {
			known[version] = event.End
		}
	}
	last := map[string]client.Object{}
	for _, revision := range r.recorder.revisions() {
		uid := string(revision.Object.GetUID())
		if before := last[uid]; before != nil && !revision.Deleted && sameButForVersions(before, revision.Object) {
			found = append(found, fmt.Sprintf("%s %s: versions %s and %s differ in nothing", revision.Resource, revision.Object.GetName(),
				before.GetResourceVersion(), revision.Object.GetResourceVersion()))
		}
		last[uid] = revision.Object
	}
	return found
}

func sameButForVersions(a, b client.Object) bool {
	bare := func(o client.Object) client.Object {
		c := o.DeepCopyObject().(client.Object)
		c.SetResourceVersion("")
		c.SetManagedFields(nil)
		return c
	}
	return reflect.DeepEqual(bare(a), bare(b))
}
