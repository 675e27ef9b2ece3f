package storagebucket

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
)

// settled tells whether the status already says all that asking the provider
// would: the same spec was compared through the same configuration, and the
// bucket was as wanted, or was refused for good. Such a pass calls nothing.
func settled(bucket *storagev1.StorageBucket, through storagev1.ObservedProvider) bool {
	status := &bucket.Status
	if status.ObservedGeneration != bucket.Generation || status.Provider != through {
		return false
	}
	provisioned := meta.FindStatusCondition(status.Conditions, storagev1.ConditionProvisioned)
	switch {
	case provisioned == nil:
		return false
	case provisioned.Status == metav1.ConditionTrue:
		return status.ID != ""
	case provisioned.Status == metav1.ConditionFalse:
		stalled := meta.FindStatusCondition(status.Conditions, engine.ConditionStalled)
		return stalled != nil && stalled.Reason == provisioned.Reason
	}
	return false
}

// pollDelay is how long to wait before the next look at a bucket that has
// been in the making for the given time: a quarter of that, within bounds, so
// that neither a quick provider is noticed late nor a slow one asked too
// often. It is spread, so that many buckets do not ask at the same moment.
func (k *Kind) pollDelay(making time.Duration) time.Duration {
	delay := min(max(making/4, k.MinPoll), k.MaxPoll)
	return time.Duration(float64(delay) * (0.9 + 0.2*k.Random()))
}

// patience is how long the provider may be at work on what it has taken on
// before what it shows counts as final: 2 minutes by default.
func (k *Kind) patience() time.Duration { return 4 * k.MaxPoll }

// makingSince is how long the bucket has been in the making.
func makingSince(bucket *storagev1.StorageBucket, now time.Time) time.Duration {
	provisioned := meta.FindStatusCondition(bucket.Status.Conditions, storagev1.ConditionProvisioned)
	if provisioned == nil || provisioned.Status != metav1.ConditionUnknown {
		return 0
	}
	return now.Sub(provisioned.LastTransitionTime.Time)
}
