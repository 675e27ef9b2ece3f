package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

const (
	providerCreates = "provider POST buckets"
	providerDeletes = "provider DELETE buckets/{id}"
)

// byEnd are the events in the order in which their answers came.
func byEnd(trace []Event) []Event {
	sorted := slices.Clone(trace)
	slices.SortStableFunc(sorted, func(a, b Event) int { return a.End - b.End })
	return sorted
}

// finalizerOrder: a bucket is created only after the finalizer and the key were
// written, and the finalizer goes only after the bucket was deleted and a read
// has said that it is gone.
func finalizerOrder(r *run) []string {
	var found []string
	held := map[string]int{}    // when the object with this key was seen with finalizer and key
	made := map[string]string{} // the id of the bucket by the key that made it
	deleted := map[string]bool{}
	absent := map[string]bool{}
	for _, event := range byEnd(r.gate.trace()) {
		id := event.Path[strings.LastIndex(event.Path, "/")+1:]
		switch key := event.Effect.Key(); {
		case event.Effect.Target == kindBucket+"/"+bucketName && event.Status == http.StatusOK:
			object := metadataOf(event.Response)
			mark := object.Annotations[storagev1.IdempotencyKeyAnnotation]
			switch {
			case slices.Contains(object.Finalizers, storagev1.BucketFinalizer):
				// A read counts too: the answer to the write may have been lost.
				if _, known := held[mark]; !known && mark != "" {
					held[mark] = event.End
				}
			case !event.Read:
				if id := made[mark]; id != "" && (!deleted[id] || !absent[id]) {
					found = append(found, fmt.Sprintf("the finalizer went although bucket %s was not deleted and seen to be gone: %s", id, event))
				}
			}
		case key == providerCreates && event.Status > 0:
			at, known := held[event.IdempotencyKey]
			if !known || at > event.Begin {
				found = append(found, "created before the finalizer and the key were written: "+event.String())
			}
			if event.Status < 300 {
				made[event.IdempotencyKey] = idOf(event.Response)
				// A replay of a key shows that the bucket is there.
			}
		case event.Effect.Provider && event.Effect.Verb == http.MethodDelete && event.Status > 0 && event.Status < 300:
			deleted[id] = true
		case event.Effect.Provider && event.Read && event.Status == http.StatusNotFound && event.Fault != Lost && event.Fault != Garbage:
			absent[id] = true
		}
	}
	return found
}

// noCreateOnceDeleted: once the user has deleted the object, no create call is
// made with a key that was not already on it. A repetition of the same key is
// the protocol's only way to find out the id.
func noCreateOnceDeleted(r *run) []string {
	if r.deletedAt == 0 {
		return nil
	}
	var found []string
	doomed := map[string]bool{}
	before := map[string]bool{} // keys that were on the object before
	for _, revision := range r.recorder.revisions() {
		switch {
		case revision.Kind != kindBucket:
		case !revision.Object.GetDeletionTimestamp().IsZero():
			doomed[string(revision.Object.GetUID())] = true
		default:
			// Of a write under way when the operator died the gate does not know
			// whether it arrived; the API server does.
			before[revision.Object.GetAnnotations()[storagev1.IdempotencyKeyAnnotation]] = true
		}
	}
	for _, event := range r.gate.trace() {
		if event.Effect.Key() == "PATCH "+kindBucket+"/"+bucketName && event.Status == http.StatusOK {
			object := metadataOf(event.Response)
			if object.DeletionTimestamp == nil {
				before[object.Annotations[storagev1.IdempotencyKeyAnnotation]] = true
			}
		}
		if event.Begin > r.deletedAt && event.Effect.Key() == providerCreates && doomed[uidOfKey(event.IdempotencyKey)] && !before[event.IdempotencyKey] {
			found = append(found, event.String())
		}
	}
	return found
}

// uidOfKey is the uid at the start of an idempotency key.
func uidOfKey(key string) string {
	parts := strings.Split(key, "-")
	return strings.Join(parts[:min(5, len(parts))], "-")
}

func idOf(body []byte) string {
	var bucket struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(body, &bucket)
	return bucket.ID
}

// secretOf is the data of a Secret.
func secretOf(body []byte) map[string]string {
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	_ = json.Unmarshal(body, &secret)
	data := map[string]string{}
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data
}
