package storagebucket

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/engine"
)

// confirmSoleOwner fails when the provider, against the protocol, has given the
// same bucket to another StorageBucket before.
func (r *run) confirmSoleOwner(ctx context.Context) error {
	sharers, err := index.SharersOf(ctx, r.Client, r.bucket)
	if err != nil {
		return err
	}
	for i := range sharers {
		if before(&sharers[i], r.bucket) {
			r.bucket.Status.Phase = storagev1.BucketPhaseFailed
			return engine.Terminal(storagev1.ReasonIDConflict, fmt.Errorf(
				"the provider gave bucket %s to %s first: delete this object, the bucket stays; and have the provider mended",
				r.bucket.Status.ID, r.nameOf(&sharers[i])))
		}
	}
	return nil
}

// leaveToOthers tells whether the bucket must stay, as another StorageBucket has it, too.
func (r *run) leaveToOthers(ctx context.Context) (bool, error) {
	sharers, err := index.SharersOf(ctx, r.Client, r.bucket)
	if err != nil || len(sharers) == 0 {
		return false, err
	}
	r.pass.Event(corev1.EventTypeWarning, storagev1.ReasonBucketRetained,
		"bucket %s is left at the provider: it gave it to %s, too", r.bucket.Status.ID, r.nameOf(&sharers[0]))
	return true, nil
}

// nameOf names another bucket, but not to the users of another namespace.
func (r *run) nameOf(other *storagev1.StorageBucket) string {
	if other.Namespace != r.bucket.Namespace {
		return "a StorageBucket of another namespace"
	}
	return "StorageBucket " + other.Name
}

// before tells whether a has the better claim to a bucket that b has, too: the
// one that serves it already, else the older.
func before(a, b *storagev1.StorageBucket) bool {
	if serves := provisioned(a); serves != provisioned(b) {
		return serves
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}

func provisioned(bucket *storagev1.StorageBucket) bool {
	return meta.IsStatusConditionTrue(bucket.Status.Conditions, storagev1.ConditionProvisioned)
}
