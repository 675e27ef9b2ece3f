package faults

import (
	"net/http"
	"slices"
)

// byEnd are the events in the order in which their answers came.
func byEnd(trace []Event) []Event {
	sorted := slices.Clone(trace)
	slices.SortStableFunc(sorted, func(a, b Event) int { return a.End - b.End })
	return sorted
}

// finalizerOrder: something is made outside only after the finalizer and the mark
// were written, and the finalizer goes only after it was deleted and a read has
// said that it is gone.
func finalizerOrder(r *Execution) []string {
	var found []string
	held := map[string]int{}    // when the object with this mark was seen with finalizer and mark
	made := map[string]string{} // the id of what was made with the mark
	deleted := map[string]bool{}
	absent := map[string]bool{}
	for _, event := range byEnd(r.gate.trace()) {
		if !event.Outside() {
			if event.Effect.Target() != r.adapter.Subject.String() || event.Status != http.StatusOK {
				continue
			}
			object := MetadataOf(event.Response)
			mark := r.adapter.MarkOf(object)
			switch {
			case slices.Contains(object.Finalizers, r.adapter.Finalizer):
				// A read counts too: the answer to the write may have been lost.
				if _, known := held[mark]; !known && mark != "" {
					held[mark] = event.End
				}
			case !event.Read:
				if id := made[mark]; id != "" && (!deleted[id] || !absent[id]) {
					found = append(found, "the finalizer went although "+id+" was not deleted and seen to be gone: "+event.String())
				}
			}
			continue
		}
		meaning := r.adapter.Meaning(event)
		switch {
		case meaning.Creates && event.Status > 0:
			if at, known := held[meaning.Mark]; !known || at > event.Begin {
				found = append(found, "created before the finalizer and the mark were written: "+event.String())
			}
			if event.Succeeded() {
				// A replay shows that it is there.
				made[meaning.Mark] = meaning.ID
			}
		case meaning.Deletes && event.Succeeded():
			deleted[meaning.ID] = true
		case event.Read && meaning.Gone && event.Fault != Lost && event.Fault != Garbage:
			absent[meaning.ID] = true
		}
	}
	return found
}

// noCreateOnceDeleted: once the user has deleted the object, nothing is made with
// a mark that was not already on it. A repetition of the same call may be the
// only way to find out the id.
func noCreateOnceDeleted(r *Execution) []string {
	if r.deletedAt == 0 {
		return nil
	}
	var found []string
	doomed := map[string]bool{}
	before := map[string]bool{} // marks that were on the object before
	for _, revision := range r.recorder.revisions() {
		switch {
		case revision.Resource != r.adapter.Subject.Resource:
		case !revision.Object.GetDeletionTimestamp().IsZero():
			doomed[string(revision.Object.GetUID())] = true
		default:
			// Of a write under way when the operator died the gate does not know
			// whether it arrived; the API server does.
			before[r.adapter.MarkOf(metadataFrom(revision.Object))] = true
		}
	}
	for _, event := range r.gate.trace() {
		if !event.Outside() {
			if event.Effect.Verb == http.MethodPatch && event.Effect.Target() == r.adapter.Subject.String() && event.Status == http.StatusOK {
				if object := MetadataOf(event.Response); object.DeletionTimestamp == nil {
					before[r.adapter.MarkOf(object)] = true
				}
			}
			continue
		}
		meaning := r.adapter.Meaning(event)
		if event.Begin > r.deletedAt && meaning.Creates && doomed[r.adapter.OwnerOf(meaning.Mark)] && !before[meaning.Mark] {
			found = append(found, event.String())
		}
	}
	return found
}
