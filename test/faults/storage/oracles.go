package storage

import (
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/test/faults"
)

// usable says what is wrong with a bucket that says it is Ready: what is
// published has to lead to a bucket as the spec wants it.
func usable(r *faults.Execution, object client.Object) []string {
	bucket := object.(*storagev1.StorageBucket)
	status, w := &bucket.Status, worldOf(r)
	if w.isLost(status.ID) {
		return nil // it was Ready when it vanished; only a comparison can tell
	}
	secret := &corev1.Secret{}
	if !r.Read(accessName, secret) {
		return []string{"there is no Secret " + accessName}
	}
	var wrong []string
	if string(secret.Data["id"]) != status.ID {
		wrong = append(wrong, fmt.Sprintf("the Secret's id is %q, the status's %q", secret.Data["id"], status.ID))
	}
	code, err := w.probe(r.T.Context(), string(secret.Data["uri"]))
	if err != nil || code != http.StatusOK {
		wrong = append(wrong, fmt.Sprintf("the published uri %s answers %d %v", secret.Data["uri"], code, err))
	}
	for _, found := range w.provider.Buckets() {
		if found.ID == status.ID && (found.Phase != mockprovider.Active || found.SizeGB < bucket.Spec.SizeGB) {
			wrong = append(wrong, fmt.Sprintf("the bucket at the provider is %+v, the spec %+v", found, bucket.Spec))
		}
	}
	return wrong
}

// onePublished: whatever the operator has written into the access Secret names a
// bucket that was made for that very object.
func onePublished(r *faults.Execution) []string {
	owners := map[string]string{} // uid of the object by the bucket's id
	for _, call := range worldOf(r).provider.Calls() {
		if call.Outcome == mockprovider.Created {
			owners[call.ID] = ownerOf(call.Key)
		}
	}
	var found []string
	for _, event := range r.Trace() {
		if !event.Succeeded() || event.Read || event.Outside() || event.Effect.Target() != access.String() {
			continue
		}
		secret := secretOf(event.Response)
		owner := ""
		for _, reference := range faults.MetadataOf(event.Response).OwnerReferences {
			owner = reference.UID
		}
		if owners[secret["id"]] != owner || owner == "" {
			found = append(found, fmt.Sprintf("%s published id %q, which was made for %q, for the object %q", event.Effect, secret["id"], owners[secret["id"]], owner))
		}
	}
	return found
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
