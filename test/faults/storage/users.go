package storage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/faults"
)

// interludes are what users do while the operator is down.
func interludes() []faults.Interlude {
	begun := func(s faults.Scenario, act int, names ...string) bool {
		return slices.ContainsFunc(s.Acts[:act+1], func(a faults.Act) bool { return slices.Contains(names, a.Name) })
	}
	bucketExists := func(s faults.Scenario, act int) bool { return begun(s, act, createBucket) }
	return []faults.Interlude{
		{Name: "delete", MakesSense: bucketExists, Do: func(r *faults.Execution) {
			removeForeign(r)
			r.Remove(bucketName, &storagev1.StorageBucket{})
			r.Alter(bucketGone)
		}},
		{
			Name: "recreate",
			MakesSense: func(s faults.Scenario, act int) bool { // not when no bucket can be created any more
				return bucketExists(s, act) && !begun(s, act, deleteConfig, deleteConfigInUse, deleteSecretInUse)
			},
			Do: func(r *faults.Execution) {
				removeForeign(r)
				r.Remove(bucketName, &storagev1.StorageBucket{})
				r.Alter(recreated(uidOf(r)))
			},
		},
		{Name: "change-back", MakesSense: bucketExists, Do: changeAndBack},
		{Name: "damage", MakesSense: bucketExists, Do: damage},
		{
			Name:       "remove-provider",
			MakesSense: func(s faults.Scenario, _ int) bool { return !settingOf(s).noConfig },
			Do: func(r *faults.Execution) {
				r.Remove(secretName, &corev1.Secret{})
				r.Remove(configName, &storagev1.BucketProviderConfig{})
				r.Alter(providerGoing)
			},
		},
	}
}

// providerGoing waits until the operator has noticed that the configuration is
// being deleted, and a bucket that is being deleted too is gone.
func providerGoing(r *faults.Execution) string {
	config := faults.Of[*storagev1.BucketProviderConfig](r, kindConfig, configName)
	if config != nil && !meta.IsStatusConditionTrue(config.Status.Conditions, conditionDeletionBlocked) {
		return "the configuration's deletion is not looked at"
	}
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
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
	return asCreated(r)
}

func uidOf(r *faults.Execution) string {
	if bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName); bucket != nil {
		return string(bucket.UID)
	}
	return ""
}

// recreated waits until the bucket with the uid is gone, creates it again as
// soon as the name is free, and waits for what the scenario waits for then.
func recreated(uid string) func(*faults.Execution) string {
	created := false
	return func(r *faults.Execution) string {
		bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
		switch {
		case bucket != nil && string(bucket.UID) == uid && uid != "":
			return "the deleted bucket is still there"
		case bucket == nil && !created:
			created = true
			allowAnotherLife(r)
			createBucketObject(r)
			return "just created"
		}
		return asCreated(r)
	}
}

// allowAnotherLife allows for the effects of a bucket that the user made again.
func allowAnotherLife(r *faults.Execution) {
	for _, key := range []string{providerCreates, providerDeletes, "POST secrets/" + accessName, "POST services/" + bucketName} {
		r.Allow(key)
	}
}

// asCreated waits for what a new bucket comes to: what the scenario says, or
// Ready where a later act has made that possible.
func asCreated(r *faults.Execution) string {
	why := ready(r)
	for _, act := range r.Scenario.Acts {
		if act.Name == createBucket && why != "" {
			why = act.Until(r)
		}
	}
	return why
}

// changeAndBack changes specs and changes them back.
func changeAndBack(r *faults.Execution) {
	size, limit := int32(0), storagev1.RateLimit{}
	faults.Change(r, bucketName, &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) {
		size = b.Spec.SizeGB
		b.Spec.SizeGB = size + 50
	})
	faults.Change(r, bucketName, &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) { b.Spec.SizeGB = size })
	faults.Change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) {
		limit = c.Spec.RateLimit
		c.Spec.RateLimit.QPS = limit.QPS + 7
	})
	faults.Change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit = limit })
}

// damage harms what the bucket owns, if it is there already.
func damage(r *faults.Execution) {
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	if bucket == nil || !bucket.DeletionTimestamp.IsZero() {
		return // what it owned is about to be collected
	}
	if s := faults.Of[*corev1.Secret](r, kindSecret, accessName); s != nil && metav1.IsControlledBy(s, bucket) {
		editAccess(r)
	}
	if s := faults.Of[*corev1.Service](r, kindService, bucketName); s != nil && metav1.IsControlledBy(s, bucket) {
		r.Remove(bucketName, &corev1.Service{})
		r.Allow("POST services/" + bucketName)
	}
}

// recreateAll deletes the bucket and makes it again, and what it needs if that
// is gone or going.
func recreateAll(r *faults.Execution) {
	r.Remove(bucketName, &storagev1.StorageBucket{})
	r.Await(func(r *faults.Execution) string {
		if r.Get(kindBucket, bucketName) == nil {
			removeForeign(r)
		}
		return bucketGone(r)
	})
	if !settingOf(r.Scenario).noConfig {
		if c := faults.Of[*storagev1.BucketProviderConfig](r, kindConfig, configName); c == nil || !c.DeletionTimestamp.IsZero() {
			r.Remove(secretName, &corev1.Secret{})
			r.Await(configGone)
			worldOf(r).provider.SetAPIKeys(map[string]string{firstKey: account, probeKey: account})
			createConfig(r)
			r.Await(configReady)
		}
	}
	allowAnotherLife(r)
	createBucketObject(r)
	r.Await(asCreated)
}
