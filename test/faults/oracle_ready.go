package faults

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// checkReady judges a revision of a bucket at the moment that it is seen: one
// that says Ready at its generation can be used, with what is published, and is
// as its spec wants it.
func (r *run) checkReady(bucket *storagev1.StorageBucket) {
	status := &bucket.Status
	if !meta.IsStatusConditionTrue(status.Conditions, "Ready") || status.ObservedGeneration != bucket.Generation || !bucket.DeletionTimestamp.IsZero() {
		return
	}
	r.mu.Lock()
	lost := r.lostByAct[status.ID]
	r.mu.Unlock()
	if lost {
		return // it was Ready when it vanished; only a comparison can tell
	}
	const oracle = "10 Ready is true"
	complain := func(format string, args ...any) {
		r.violation.add(oracle, fmt.Sprintf("at resourceVersion %s: ", bucket.ResourceVersion)+fmt.Sprintf(format, args...))
	}
	secret := &corev1.Secret{}
	if !r.get(accessName, secret) {
		complain("there is no Secret %s", accessName)
		return
	}
	if string(secret.Data["id"]) != status.ID {
		complain("the Secret's id is %q, the status's %q", secret.Data["id"], status.ID)
	}
	code, err := r.probe(string(secret.Data["uri"]))
	if err != nil || code != http.StatusOK {
		complain("the published uri %s answers %d %v", secret.Data["uri"], code, err)
	}
	for _, found := range r.world.Provider.Buckets() {
		if found.ID == status.ID && (found.Phase != mockprovider.Active || found.SizeGB < bucket.Spec.SizeGB) {
			complain("the bucket at the provider is %+v, the spec %+v", found, bucket.Spec)
		}
	}
}

// generationsGrow: observedGeneration never goes back, nor beyond the generation.
func generationsGrow(r *run) []string {
	var found []string
	last := map[string]int64{}
	for _, revision := range r.recorder.revisions() {
		var observed int64
		switch object := revision.Object.(type) {
		case *storagev1.StorageBucket:
			observed = object.Status.ObservedGeneration
		case *storagev1.BucketProviderConfig:
			observed = object.Status.ObservedGeneration
		default:
			continue
		}
		uid := string(revision.Object.GetUID())
		if observed < last[uid] || observed > revision.Object.GetGeneration() {
			found = append(found, fmt.Sprintf("%s %s: observedGeneration %d after %d, at generation %d",
				revision.Kind, revision.Object.GetName(), observed, last[uid], revision.Object.GetGeneration()))
		}
		last[uid] = observed
	}
	return found
}

// onePublished: whatever the operator has written into the access Secret names a
// bucket that was made for that very object.
func onePublished(r *run) []string {
	owners := map[string]string{} // uid of the object by the bucket's id
	for _, call := range r.world.Provider.Calls() {
		if call.Outcome == mockprovider.Created {
			owners[call.ID] = uidOfKey(call.Key)
		}
	}
	var found []string
	for _, event := range r.gate.trace() {
		if event.Status >= 300 || event.Status == 0 || event.Read || event.Effect.Target != kindSecret+"/"+accessName {
			continue
		}
		secret := secretOf(event.Response)
		owner := ""
		for _, reference := range metadataOf(event.Response).OwnerReferences {
			owner = reference.UID
		}
		if owners[secret["id"]] != owner || owner == "" {
			found = append(found, fmt.Sprintf("%s published id %q, which was made for %q, for the object %q", event.Effect, secret["id"], owners[secret["id"]], owner))
		}
	}
	return found
}
