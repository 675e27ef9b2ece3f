package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, namespace := admin(t), testplane.Namespace(t)
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		spec   map[string]any
	}{
		"StorageBucket": {
			object: bucketObject(t, namespace, unset("spec.encrypted")),
			spec:   map[string]any{"region": "us-east-1", "sizeGB": int64(100), "deletionPolicy": "Delete"},
		},
		"BucketProviderConfig": {
			object: configObject(t, namespace),
			spec:   map[string]any{"endpoint": "https://buckets.example.com", "type": "HTTP"},
		},
		"BucketProviderConfig with a rate": {
			object: configObject(t, namespace, set("spec.rateLimit.qps", int64(5))),
			spec: map[string]any{
				"endpoint": "https://buckets.example.com", "type": "HTTP",
				"rateLimit": map[string]any{"qps": int64(5), "burst": int64(1000)},
			},
		},
		"BucketProviderConfig with a burst": {
			object: configObject(t, namespace, set("spec.rateLimit.burst", int64(5))),
			spec: map[string]any{
				"endpoint": "https://buckets.example.com", "type": "HTTP",
				"rateLimit": map[string]any{"qps": int64(500), "burst": int64(5)},
			},
		},
		"null for a field with a default": {
			object: bucketObject(t, namespace, set("spec.deletionPolicy", nil)),
			spec:   map[string]any{"region": "us-east-1", "sizeGB": int64(100), "encrypted": true, "deletionPolicy": "Delete"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.Create(t.Context(), tc.object, client.DryRunAll); err != nil {
				t.Fatalf("it was refused: %v", err)
			}
			if diff := cmp.Diff(tc.spec, tc.object.Object["spec"]); diff != "" {
				t.Errorf("the stored spec (-want +got):\n%s", diff)
			}
		})
	}
}
