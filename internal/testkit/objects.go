package testkit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// Bucket is a StorageBucket that the mock provider takes, unless change says otherwise.
func Bucket(name string, change ...func(*storagev1.StorageBucket)) *storagev1.StorageBucket {
	bucket := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.StorageBucketSpec{Region: "us-east-1", SizeGB: 100},
	}
	for _, c := range change {
		c(bucket)
	}
	return bucket
}

// ServedBy has a bucket served by the configuration of that name.
func ServedBy(config string) func(*storagev1.StorageBucket) {
	return func(b *storagev1.StorageBucket) { b.Spec.ProviderRef = config }
}

// InNamespace puts a bucket into a namespace.
func InNamespace(namespace string) func(*storagev1.StorageBucket) {
	return func(b *storagev1.StorageBucket) { b.Namespace = namespace }
}

// Config is a BucketProviderConfig whose rate limit keeps no test waiting. The
// secret is the name of the provider's Secret, empty for a provider that needs none.
func Config(name, endpoint, secret string) *storagev1.BucketProviderConfig {
	return &storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.BucketProviderConfigSpec{
			Endpoint: endpoint, SecretRef: storagev1.SecretReference{Name: secret},
			RateLimit: storagev1.RateLimit{QPS: 1000, Burst: 1000},
		},
	}
}

// Secret is a provider's Secret with that API key.
func Secret(name, apiKey string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"apiKey": apiKey}}
}
