package observability_test

import (
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

// newBucket is a bucket that the provider takes, unless change says otherwise.
func newBucket(name string, change ...func(*storagev1.StorageBucket)) *storagev1.StorageBucket {
	bucket := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.StorageBucketSpec{Region: "us-east-1", SizeGB: 100},
	}
	for _, c := range change {
		c(bucket)
	}
	return bucket
}

func servedBy(config string) func(*storagev1.StorageBucket) {
	return func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = config }
}

// newConfig is a configuration that is good, unless change says otherwise.
func newConfig(name, endpoint string, change ...func(*storagev1.BucketProviderConfig)) *storagev1.BucketProviderConfig {
	config := &storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.BucketProviderConfigSpec{Endpoint: endpoint},
	}
	for _, c := range change {
		c(config)
	}
	return config
}

func withSecret(name string) func(*storagev1.BucketProviderConfig) {
	return func(c *storagev1.BucketProviderConfig) { c.Spec.SecretRef.Name = name }
}

// serve serves a provider until the test's end, and returns its URL.
func serve(t *testing.T, provider *mockprovider.Provider) string {
	t.Helper()
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	return server.URL
}

// remove asks for objects to be deleted, and does not wait until they are.
func remove(t *testing.T, w *operatortest.World, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetNamespace(w.Namespace)
		if err := w.Client.Delete(t.Context(), object); err != nil {
			t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
		}
	}
}
