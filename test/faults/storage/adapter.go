// Package storage tells the fault matrix of StorageBuckets and the
// configurations that serve them.
package storage

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/test/faults"
)

// Resources that are followed.
const (
	kindBucket  = "storagebuckets"
	kindConfig  = "bucketproviderconfigs"
	kindSecret  = "secrets"
	kindService = "services"
)

// Effects that make and delete a bucket.
const (
	providerCreates = "provider POST buckets"
	providerDeletes = "provider DELETE buckets/{id}"
)

var access = faults.Object{Resource: kindSecret, Name: accessName}

// core are one plan of each way to lose or double a bucket.
var core = regexp.MustCompile(`^life/((crash-after|lost|zombie-recreate)/provider_POST_buckets#1|crash-(before|after)/provider_DELETE|crash-(before|after)/PATCH_storagebuckets/photos#1).*$`)

// Adapter is what the fault matrix has to know.
func Adapter() *faults.Adapter {
	return &faults.Adapter{
		Scheme:     controllers.NewScheme(),
		Scenarios:  scenarios(),
		Core:       core,
		Interludes: interludes(),
		Resources: []faults.Resource{
			{Name: kindBucket, Kind: "StorageBucket", Reconciled: true, List: func() client.ObjectList { return &storagev1.StorageBucketList{} }},
			{Name: kindConfig, Kind: "BucketProviderConfig", Reconciled: true, List: func() client.ObjectList { return &storagev1.BucketProviderConfigList{} }},
			{Name: kindSecret, Kind: "Secret", List: func() client.ObjectList { return &corev1.SecretList{} }},
			{Name: kindService, Kind: "Service", List: func() client.ObjectList { return &corev1.ServiceList{} }},
		},
		Subject:      faults.Object{Resource: kindBucket, Name: bucketName},
		Finalizer:    storagev1.BucketFinalizer,
		Children:     []faults.Object{access, {Resource: kindService, Name: bucketName}, {Resource: "endpointslices", Name: bucketName}},
		FieldManager: "bucketoperator",
		Canaries:     []string{firstKey, secondKey},

		MarkOf:  func(m faults.Metadata) string { return m.Annotations[storagev1.IdempotencyKeyAnnotation] },
		OwnerOf: ownerOf,
		IDOf:    func(o client.Object) string { return o.(*storagev1.StorageBucket).Status.ID },
		Meaning: meaning,

		Open:     open,
		Recreate: recreateAll,
		Compares: func(r *faults.Execution) bool {
			bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
			return bucket != nil && bucket.Status.ID != ""
		},
		Usable:  usable,
		Mask:    mask,
		Oracles: []faults.Oracle{{Name: "11 one published credential", Judge: onePublished}},
	}
}

// ownerOf is the uid at the start of an idempotency key.
func ownerOf(key string) string {
	parts := strings.Split(key, "-")
	return strings.Join(parts[:min(5, len(parts))], "-")
}

// name reads a call to the provider.
func name(request *http.Request, _ []byte) faults.Call {
	call := faults.Call{
		Effect: faults.Effect{Verb: request.Method, Kind: "buckets"},
		Read:   request.Method == http.MethodGet,
		Mark:   request.Header.Get("Idempotency-Key"),
	}
	switch path := request.URL.Path; {
	case strings.HasSuffix(strings.TrimRight(path, "/"), "/buckets"):
	case strings.HasSuffix(path, "-probe"):
		call.Effect.Key = "{probe}"
	default:
		call.Effect.Key = "{id}"
	}
	return call
}

// meaning says what a call to the provider is about.
func meaning(event faults.Event) faults.Meaning {
	m := faults.Meaning{
		Mark: event.Mark, ID: event.Path[strings.LastIndex(event.Path, "/")+1:],
		Creates: event.Effect.Verb == http.MethodPost,
		Deletes: event.Effect.Verb == http.MethodDelete,
		Gone:    event.Status == http.StatusNotFound,
	}
	if m.Creates {
		var bucket struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(event.Response, &bucket)
		m.ID = bucket.ID
	}
	return m
}

// mask takes out what differs between two runs to the same end.
func mask(resource string, fields map[string]any) {
	status, ok := fields["status"].(map[string]any)
	if resource != kindBucket || !ok {
		return
	}
	delete(status, "createOutcome") // less may be known after a crash
	if provider, ok := status["provider"].(map[string]any); ok {
		delete(provider, "revision")
	}
}
