package storagebucket

import (
	"context"
	"maps"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// accessSecretSuffix makes the name of the Secret out of the bucket's.
const accessSecretSuffix = "-access"

// accessSecretType is a Secret type of servicebinding.io.
const accessSecretType corev1.SecretType = "servicebinding.io/storage-bucket"

// publishAccess keeps the Secret that tells an application how to reach the bucket.
func (r *run) publishAccess(ctx context.Context) error {
	if !r.usable() {
		return engine.Skipped()
	}
	data := accessData(r.bucket)
	name := r.bucket.Name + accessSecretSuffix
	err := child.Ensure(ctx, r.pass, child.Child[*corev1.Secret]{
		Want: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.bucket.Namespace},
			Type:       accessSecretType,
			Data:       data,
		},
		Same: func(live *corev1.Secret) bool { return child.HoldsData(live.Data, data) },
		Correct: func(live *corev1.Secret) {
			if live.Data == nil {
				live.Data = map[string][]byte{}
			}
			maps.Copy(live.Data, data)
		},
		// A Secret of this very bucket that a restore has brought back.
		Identifies: func(live *corev1.Secret) bool {
			return child.HoldsData(live.Data, map[string][]byte{"id": []byte(r.bucket.Status.ID)})
		},
		Conflict: storagev1.ReasonSecretConflict,
		// Its type cannot be changed back, and an application keeps what it has read.
		Remake:   true,
		Metadata: child.Inherited(r.bucket.Spec.InheritedMetadata),
	})
	if err == nil {
		r.bucket.Status.Binding.Name = name
	}
	return err
}

// accessData is what the Secret holds. It is always the same set of keys, and
// nothing of the provider's credentials is among it.
func accessData(bucket *storagev1.StorageBucket) map[string][]byte {
	status := &bucket.Status
	data := map[string][]byte{
		"type":     []byte("storage-bucket"),
		"provider": []byte(status.Provider.Name),
		"id":       []byte(status.ID),
		"region":   []byte(bucket.Spec.Region),
		"endpoint": []byte(status.Endpoint),
		"uri":      nil, "host": nil, "port": nil,
	}
	if endpoint, err := url.Parse(status.Endpoint); err == nil {
		data["uri"] = []byte(endpoint.JoinPath("buckets", status.ID).String())
		data["host"] = []byte(endpoint.Hostname())
		data["port"] = []byte(portOf(endpoint))
	}
	return data
}

// portOf is the port of a URL, the scheme's own when it names none.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
