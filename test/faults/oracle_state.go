package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// snapshot is the state of the namespace and of the provider, without what has
// to differ between two runs: times, versions, uids, ids, keys, the port.
func (r *run) snapshot() string {
	mask := r.masks()
	var parts []string
	for _, kind := range []string{kindBucket, kindConfig, kindSecret, kindService} {
		for _, object := range r.recorder.all(kind) {
			parts = append(parts, kind+" "+mask.Replace(plain(r, kind, object)))
		}
	}
	for _, bucket := range r.world.Provider.Buckets() {
		bucket.CreatedAt = bucket.CreatedAt.Truncate(0).Truncate(1 << 62)
		line, _ := json.MarshalIndent(bucket, "", "  ")
		parts = append(parts, "at the provider "+mask.Replace(string(line)))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// masks replaces what differs by what it stands for: ids count from the first
// bucket that was made, so that one more bucket shows.
func (r *run) masks() *strings.Replacer {
	_, port, _ := strings.Cut(strings.TrimPrefix(r.world.URL, "http://"), ":")
	pairs := []string{r.world.Namespace, "NAMESPACE", port, "11111"}
	label := map[string]string{}
	for i, id := range r.madeIDs() {
		label[id] = fmt.Sprintf("bucket-no-%d", i+1)
		pairs = append(pairs, id, label[id])
	}
	for _, bucket := range r.world.Provider.Buckets() {
		pairs = append(pairs, bucket.Key, "key-of-"+label[bucket.ID])
	}
	for _, kind := range []string{kindBucket, kindConfig} {
		for name, object := range r.recorder.all(kind) {
			if key := object.GetAnnotations()[storagev1.IdempotencyKeyAnnotation]; key != "" {
				pairs = append(pairs, key, "key-of-no-bucket")
			}
			pairs = append(pairs, string(object.GetUID()), "uid-of-"+name)
		}
	}
	if secret := r.recorder.get(kindSecret, accessName); isForeign(secret) {
		for _, owner := range secret.GetOwnerReferences() {
			pairs = append(pairs, string(owner.UID), "uid-of-somebody")
		}
	}
	return strings.NewReplacer(pairs...)
}

// madeIDs are the ids of all buckets that the provider has made, in order.
func (r *run) madeIDs() []string {
	var ids []string
	for _, call := range r.world.Provider.Calls() {
		if call.Outcome == mockprovider.Created {
			ids = append(ids, call.ID)
		}
	}
	return ids
}

// plain is an object as indented JSON, without what the API server makes up.
func plain(r *run, kind string, object client.Object) string {
	raw, err := json.Marshal(object)
	if err != nil {
		r.t.Fatal(err)
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		r.t.Fatal(err)
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
	if data, ok := fields["data"].(map[string]any); ok && kind == kindSecret {
		for key, value := range readable(data) {
			data[key] = value
		}
	}
	if spec, ok := fields["spec"].(map[string]any); ok && kind == kindService {
		delete(spec, "clusterIPs")
	}
	out, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		r.t.Fatal(err)
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

// plainStatus takes times and the revision of the configuration out, and puts
// generations in relation to the object's.
func plainStatus(status map[string]any, generation string) {
	current := func(fields map[string]any) {
		if fmt.Sprint(fields["observedGeneration"]) == generation {
			fields["observedGeneration"] = "current"
		}
	}
	current(status)
	delete(status, "createOutcome") // less may be known after a crash
	if provider, ok := status["provider"].(map[string]any); ok {
		delete(provider, "revision")
	}
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

// checkOneToOne: the provider has a bucket for each object that says so, and no other.
func (r *run) checkOneToOne() {
	byKey := map[string]string{}
	for _, bucket := range r.world.Provider.Buckets() {
		if bucket.Key == "" {
			r.violation.add("4 one to one", "bucket "+bucket.ID+" at the provider bears no key")
		}
		byKey[bucket.Key] = bucket.ID
	}
	for name, object := range r.recorder.all(kindBucket) {
		key := object.GetAnnotations()[storagev1.IdempotencyKeyAnnotation]
		id := object.(*storagev1.StorageBucket).Status.ID
		if id != "" && byKey[key] != id {
			r.violation.add("4 one to one", fmt.Sprintf("StorageBucket %s has id %q, its key made %q", name, id, byKey[key]))
		}
		delete(byKey, key)
	}
	for key, id := range byKey {
		r.violation.add("4 one to one", fmt.Sprintf("bucket %s at the provider, made with %s, belongs to no object", id, key))
	}
}

// nothingLeft: after the teardown there is nothing, at the provider or in the namespace.
func nothingLeft(r *run) []string {
	var found []string
	for _, bucket := range r.world.Provider.Buckets() {
		found = append(found, "bucket "+bucket.ID+" is still at the provider")
	}
	for kind := range newLists() {
		for name := range r.recorder.all(kind) {
			found = append(found, kind+"/"+name+" is still there")
		}
	}
	return found
}
