package storage

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/faults"
)

// setting is how a scenario's world differs from the usual one.
type setting struct {
	// noConfig leaves the configuration out: the operator's default endpoint serves the bucket.
	noConfig bool
	// region is the bucket's; empty means a good one.
	region string
	// activateAfter is how long the provider makes a bucket.
	activateAfter time.Duration
}

// Names of acts that plans refer to.
const (
	createBucket = "create the bucket"
	deleteBucket = "delete the bucket"
	deleteConfig = "delete the configuration"

	deleteConfigInUse = "delete the configuration while the bucket uses it"
	deleteSecretInUse = "delete its Secret as well"
)

// conditionDeletionBlocked is True on what is kept while others use it.
const conditionDeletionBlocked = "DeletionBlocked"

// Names of objects.
const (
	bucketName  = "photos"
	accessName  = bucketName + "-access"
	configName  = storagev1.DefaultBucketProviderConfigName
	secretName  = "provider-key"
	goodRegion  = "us-east-1"
	noSuchPlace = "nowhere-1"
)

// Canaries: none of these may be seen anywhere but in the Secret and in calls
// to the provider. The last one is the harness's own.
const (
	firstKey  = "canary-5sZk2TqYb9-first"
	secondKey = "canary-Wm81xPvQe3-second"
	probeKey  = "probe-key-of-the-harness"
	account   = "tenant"
)

// scenarios are all scenarios.
func scenarios() []faults.Scenario {
	return []faults.Scenario{
		{Name: "life", Acts: []faults.Act{
			configCreated, bucketCreated(ready), resized, rateLimited, keyRotated, endpointMoved,
			accessEdited, accessDeleted, serviceUnlabeled, serviceDeleted, vanished, bucketDeleted, configDeleted,
		}},
		{Name: "edited", Setting: setting{noConfig: true}, Acts: []faults.Act{bucketCreated(ready), serviceEdited, bucketDeleted}},
		{Name: "default-endpoint", Setting: setting{noConfig: true}, Acts: []faults.Act{bucketCreated(ready), resized, bucketDeleted}},
		{Name: "slow", Setting: setting{activateAfter: 250 * time.Millisecond}, Acts: []faults.Act{
			configCreated, clocked(bucketCreated(ready)), bucketDeleted, configDeleted,
		}},
		{Name: "unfinished", Setting: setting{activateAfter: time.Hour}, Acts: []faults.Act{
			configCreated, clocked(bucketCreated(provisioning)), clocked(bucketDeleted), configDeleted,
		}},
		{Name: "refused", Setting: setting{region: noSuchPlace}, Acts: []faults.Act{configCreated, bucketCreated(refused), bucketDeleted, configDeleted}},
		{Name: "config-first", Acts: []faults.Act{configCreated, bucketCreated(ready), configDeletedInUse, secretDeletedInUse, bucketDeleted, configDeleted}},
		{Name: "bucket-first", Racing: true, Acts: []faults.Act{bucketCreated(unresolved), configCreatedFor(ready), bucketDeleted, configDeleted}},
		{Name: "foreign", Racing: true, Acts: []faults.Act{configCreated, foreignMade, bucketCreated(conflicting), foreignGone, bucketDeleted, configDeleted}},
	}
}

func clocked(act faults.Act) faults.Act {
	act.Clocked = true
	return act
}

var configCreated = configCreatedFor(configReady)

func configCreatedFor(until func(*faults.Execution) string) faults.Act {
	return faults.Act{
		Name: "create the configuration",
		Do:   createConfig,
		Until: func(r *faults.Execution) string {
			if why := configReady(r); why != "" {
				return why
			}
			return until(r)
		},
	}
}

func createConfig(r *faults.Execution) {
	r.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, StringData: map[string]string{"apiKey": firstKey}})
	r.Create(&storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: configName},
		Spec:       storagev1.BucketProviderConfigSpec{Endpoint: worldOf(r).url, SecretRef: storagev1.SecretReference{Name: secretName}},
	})
}

func bucketCreated(until func(*faults.Execution) string) faults.Act {
	return faults.Act{Name: createBucket, Do: createBucketObject, Until: until}
}

func createBucketObject(r *faults.Execution) {
	r.Create(&storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Name: bucketName},
		Spec:       storagev1.StorageBucketSpec{Region: worldOf(r).region(), SizeGB: 100, Encrypted: new(true)},
	})
}

var resized = faults.Act{
	Name: "resize the bucket",
	Do: func(r *faults.Execution) {
		faults.Change(r, bucketName, &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	},
	Until: ready,
}

var rateLimited = faults.Act{
	Name: "change the rate limit",
	Do: func(r *faults.Execution) {
		rememberRevision(r)
		faults.Change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit.QPS = 500 })
	},
	Until: compared,
}

var endpointMoved = faults.Act{
	Name: "change the endpoint's path",
	Do: func(r *faults.Execution) {
		rememberRevision(r)
		faults.Change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.Endpoint += "/" })
	},
	Until: compared,
}

var keyRotated = faults.Act{
	Name: "rotate the provider's key",
	Do: func(r *faults.Execution) {
		rememberRevision(r)
		worldOf(r).provider.SetAPIKeys(map[string]string{secondKey: account, probeKey: account})
		faults.Change(r, secretName, &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte(secondKey) })
	},
	Until: compared,
}

func rememberRevision(r *faults.Execution) {
	if bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName); bucket != nil {
		worldOf(r).memo["revision"] = bucket.Status.Provider.Revision
	}
}

// compared: the bucket was compared through the configuration as it is now.
func compared(r *faults.Execution) string {
	if why := configReady(r); why != "" {
		return why
	}
	if why := ready(r); why != "" {
		return why
	}
	if faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName).Status.Provider.Revision == worldOf(r).memo["revision"] {
		return "the bucket was not compared through the changed configuration"
	}
	return ""
}

var accessEdited = faults.Act{
	Name:  "edit the access Secret",
	Do:    editAccess,
	Until: ready,
}

func editAccess(r *faults.Execution) {
	faults.Change(r, accessName, &corev1.Secret{}, func(s *corev1.Secret) {
		s.Data["id"] = []byte("somebody-elses")
		delete(s.Data, "uri")
	})
}

var accessDeleted = faults.Act{
	Name:  "delete the access Secret",
	Do:    func(r *faults.Execution) { r.Remove(accessName, &corev1.Secret{}) },
	Until: ready,
}

var serviceUnlabeled = faults.Act{
	Name: "take the label off the Service",
	// The label is what makes the operator's cache see the Service at all.
	Do: func(r *faults.Execution) {
		faults.Change(r, bucketName, &corev1.Service{}, func(s *corev1.Service) { s.Labels = nil })
	},
	Until: ready,
}

var serviceDeleted = faults.Act{
	Name:  "delete the Service",
	Do:    func(r *faults.Execution) { r.Remove(bucketName, &corev1.Service{}) },
	Until: ready,
}

var serviceEdited = faults.Act{
	Name: "edit the Service",
	Do: func(r *faults.Execution) {
		faults.Change(r, bucketName, &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports[0].Port++ })
	},
	Until: ready,
}

var vanished = faults.Act{
	Name: "the bucket vanishes at the provider",
	Do: func(r *faults.Execution) {
		bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
		worldOf(r).lose(bucket.Status.ID)
		worldOf(r).memo["vanished"] = bucket.Status.ID
		if _, err := worldOf(r).provider.Vanish(bucket.Status.ID); err != nil {
			r.T.Fatal(err)
		}
		r.RestartComparing()
	},
	Until: func(r *faults.Execution) string {
		if why := ready(r); why != "" {
			return why
		}
		if faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName).Status.ID == worldOf(r).memo["vanished"] {
			return "the bucket that vanished is still in the status"
		}
		return ""
	},
	Clocked: true,
}

var bucketDeleted = faults.Act{
	Name: deleteBucket,
	Do:   func(r *faults.Execution) { r.Remove(bucketName, &storagev1.StorageBucket{}) },
	Until: func(r *faults.Execution) string {
		if r.Get(kindBucket, bucketName) == nil {
			removeForeign(r) // what a run that was cut short has left
		}
		if config := r.Get(kindConfig, configName); config != nil && !config.GetDeletionTimestamp().IsZero() {
			return "the configuration, which has waited for this, is still there"
		}
		if secret := r.Get(kindSecret, secretName); secret != nil && !secret.GetDeletionTimestamp().IsZero() {
			return "the provider's Secret, which has waited for this, is still there"
		}
		return bucketGone(r)
	},
	Teardown: true,
}

func bucketGone(r *faults.Execution) string {
	if r.Get(kindBucket, bucketName) != nil {
		return "the bucket is still there"
	}
	for kind, name := range map[string]string{kindSecret: accessName, kindService: bucketName} {
		if r.Get(kind, name) != nil {
			return name + " was not collected"
		}
	}
	return ""
}

var configDeleted = faults.Act{
	Name: deleteConfig,
	Do: func(r *faults.Execution) {
		r.Remove(configName, &storagev1.BucketProviderConfig{})
		r.Remove(secretName, &corev1.Secret{})
	},
	Until:    configGone,
	Teardown: true,
}

func configGone(r *faults.Execution) string {
	if r.Get(kindConfig, configName) != nil {
		return "the configuration is still there"
	}
	if r.Get(kindSecret, secretName) != nil {
		return "the provider's Secret is still there"
	}
	return ""
}

var configDeletedInUse = faults.Act{
	Name: deleteConfigInUse,
	Do:   func(r *faults.Execution) { r.Remove(configName, &storagev1.BucketProviderConfig{}) },
	Until: func(r *faults.Execution) string {
		config := faults.Of[*storagev1.BucketProviderConfig](r, kindConfig, configName)
		if config == nil || !meta.IsStatusConditionTrue(config.Status.Conditions, conditionDeletionBlocked) {
			return "the configuration is not kept"
		}
		return ready(r)
	},
}

// Apart from the configuration's deletion: the bucket's status names a revision
// of both, and two changes at once are one for it, or two, as it happens.
var secretDeletedInUse = faults.Act{
	Name: deleteSecretInUse,
	Do:   func(r *faults.Execution) { r.Remove(secretName, &corev1.Secret{}) },
	Until: func(r *faults.Execution) string {
		secret := r.Get(kindSecret, secretName)
		if secret == nil || secret.GetDeletionTimestamp().IsZero() {
			return "the Secret is not being deleted, and kept"
		}
		return ready(r)
	},
}

var foreignMade = faults.Act{
	Name: "somebody takes the names",
	Do: func(r *faults.Execution) {
		// The Secret even has a controller of the bucket's name.
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: bucketName}}
		r.Create(owner)
		r.Create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: accessName, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true),
			}}},
			StringData: map[string]string{"mine": "stays"},
		})
		r.Create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: bucketName}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "mine.example.com",
		}})
	},
	Until: func(*faults.Execution) string { return "" },
}

func conflicting(r *faults.Execution) string {
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	if bucket == nil {
		return "no bucket"
	}
	for condition, reason := range map[string]string{
		storagev1.ConditionCredentialsReady: storagev1.ReasonSecretConflict, storagev1.ConditionEndpointReady: storagev1.ReasonServiceConflict,
	} {
		if c := meta.FindStatusCondition(bucket.Status.Conditions, condition); c == nil || c.Reason != reason {
			return fmt.Sprintf("%s is not %s", condition, reason)
		}
	}
	return ""
}

var foreignGone = faults.Act{
	Name:  "they give the names back",
	Do:    removeForeign,
	Until: ready,
}

func removeForeign(r *faults.Execution) {
	if secret := r.Get(kindSecret, accessName); isForeign(secret) {
		r.Remove(accessName, &corev1.Secret{})
		r.Remove(bucketName, &corev1.ConfigMap{})
	}
	if service := r.Get(kindService, bucketName); isForeign(service) {
		r.Remove(bucketName, &corev1.Service{})
	}
}

// isForeign tells whether an object is there and no bucket's.
func isForeign(object client.Object) bool {
	if object == nil {
		return false
	}
	owner := metav1.GetControllerOf(object)
	return owner == nil || owner.Kind != "StorageBucket"
}
