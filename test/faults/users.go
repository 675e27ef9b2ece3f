package faults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// whileDown is what the user does between two incarnations of the operator.
func (r *run) whileDown() {
	switch r.plan.While {
	case Nothing:
	case Delete:
		r.removeForeign()
		r.remove(bucketName, &storagev1.StorageBucket{})
		r.altered, r.goal = true, bucketGone
	case Recreate:
		r.removeForeign()
		r.remove(bucketName, &storagev1.StorageBucket{})
		r.altered, r.goal = true, r.recreated(r.memoUID())
	case ChangeBack:
		r.changeAndBack()
	case Damage:
		r.damage()
	case RemoveProvider:
		r.remove(secretName, &corev1.Secret{})
		r.remove(configName, &storagev1.BucketProviderConfig{})
		r.altered, r.goal = true, providerGoing
	}
	r.flush()
}

// providerGoing waits until the operator has noticed that the configuration is
// being deleted, and a bucket that is being deleted too is gone.
func providerGoing(r *run) string {
	config := of[*storagev1.BucketProviderConfig](r, kindConfig, configName)
	if config != nil && !meta.IsStatusConditionTrue(config.Status.Conditions, conditionDeletionBlocked) {
		return "the configuration's deletion is not looked at"
	}
	bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	switch {
	case bucket == nil:
		return ""
	case !bucket.DeletionTimestamp.IsZero():
		return "the bucket is still there"
	}
	for _, reason := range []string{storagev1.ReasonProviderDeleting, storagev1.ReasonProviderNotFound, storagev1.ReasonSecretNotFound} {
		if reasonIs(bucket, reason) {
			return "" // it was not created yet, and cannot be any more
		}
	}
	return r.asCreated()
}

func (r *run) memoUID() string {
	if bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName); bucket != nil {
		return string(bucket.UID)
	}
	return ""
}

// recreated waits until the bucket with the uid is gone, creates it again as
// soon as the name is free, and waits for what the scenario waits for then.
func (r *run) recreated(uid string) func(*run) string {
	created := false
	return func(r *run) string {
		bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName)
		switch {
		case bucket != nil && string(bucket.UID) == uid && uid != "":
			return "the deleted bucket is still there"
		case bucket == nil && !created:
			created = true
			r.allowAnotherLife()
			r.createBucket()
			return "just created"
		}
		return r.asCreated()
	}
}

// allowAnotherLife allows for the effects of a bucket that the user made again.
func (r *run) allowAnotherLife() {
	for _, key := range []string{providerCreates, providerDeletes, "POST secrets/" + accessName, "POST services/" + bucketName} {
		r.allowance[key]++
	}
}

// asCreated waits for what a new bucket comes to: what the scenario says, or
// Ready where a later act has made that possible.
func (r *run) asCreated() string {
	why := ready(r)
	for _, act := range r.scenario.Acts {
		if act.Name == createBucket && why != "" {
			why = act.Until(r)
		}
	}
	return why
}

// changeAndBack changes specs and changes them back.
func (r *run) changeAndBack() {
	size, limit := int32(0), storagev1.RateLimit{}
	change(r, bucketName, &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) {
		size = b.Spec.SizeGB
		b.Spec.SizeGB = size + 50
	})
	change(r, bucketName, &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) { b.Spec.SizeGB = size })
	change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) {
		limit = c.Spec.RateLimit
		c.Spec.RateLimit.QPS = limit.QPS + 7
	})
	change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit = limit })
}

// damage harms what the bucket owns, if it is there already.
func (r *run) damage() {
	bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	if bucket == nil || !bucket.DeletionTimestamp.IsZero() {
		return // what it owned is about to be collected
	}
	if s := of[*corev1.Secret](r, kindSecret, accessName); s != nil && metav1.IsControlledBy(s, bucket) {
		editAccess(r)
	}
	if s := of[*corev1.Service](r, kindService, bucketName); s != nil && metav1.IsControlledBy(s, bucket) {
		r.remove(bucketName, &corev1.Service{})
		r.allowance["POST services/"+bucketName]++
	}
}

// recreateAll deletes the bucket and makes it again, and what it needs if that
// is gone or going.
func (r *run) recreateAll() {
	r.altered = true
	wait := func(goal func(*run) string) {
		r.goal = goal
		r.settle(Act{})
	}
	r.remove(bucketName, &storagev1.StorageBucket{})
	wait(func(r *run) string {
		if r.recorder.get(kindBucket, bucketName) == nil {
			r.removeForeign()
		}
		return bucketGone(r)
	})
	if !r.scenario.NoConfig {
		if c := of[*storagev1.BucketProviderConfig](r, kindConfig, configName); c == nil || !c.DeletionTimestamp.IsZero() {
			r.remove(secretName, &corev1.Secret{})
			wait(configGone)
			r.world.Provider.SetAPIKeys(map[string]string{firstKey: account, probeKey: account})
			r.createConfig()
			wait(configReady)
		}
	}
	r.allowAnotherLife()
	r.createBucket()
	wait((*run).asCreated)
}
