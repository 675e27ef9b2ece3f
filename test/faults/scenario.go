package faults

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// Scenario is what users do, in order.
type Scenario struct {
	Name string
	Acts []Act
	// NoConfig leaves the configuration out: the operator's default endpoint serves the bucket.
	NoConfig bool
	// Racing is true when two controllers are at work at the same time, so that
	// what is reported on the way to the same end differs from run to run.
	Racing bool
	// Region is the bucket's.
	Region string
	// ActivateAfter is how long the provider makes a bucket.
	ActivateAfter time.Duration
}

// Act is something that a user does, and what is to come of it.
type Act struct {
	Name string
	Do   func(*run)
	// Until says what is still missing; empty when all is as it has to be.
	Until func(*run) string
	// Clocked is true when the number of reads in it is a matter of time.
	Clocked bool
	// Teardown is true for what is done in every run.
	Teardown bool
	// EndsConfig is true when no bucket can be created any more after it.
	EndsConfig bool
}

// Names of acts that plans refer to.
const (
	createBucket = "create the bucket"
	deleteBucket = "delete the bucket"
	deleteConfig = "delete the configuration"
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

// Provider is the provider of the scenario.
func (s Scenario) Provider() mockprovider.Options {
	options := mockprovider.Options{ActivateAfter: s.ActivateAfter}
	if !s.NoConfig {
		options.APIKeys = map[string]string{firstKey: account, probeKey: account}
	}
	return options
}

func (s Scenario) region() string {
	if s.Region != "" {
		return s.Region
	}
	return goodRegion
}

// Scenarios are all scenarios.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "life", Acts: []Act{
			configCreated, bucketCreated(ready), resized, rateLimited, keyRotated, endpointMoved,
			accessEdited, accessDeleted, serviceUnlabeled, serviceDeleted, vanished, bucketDeleted, configDeleted,
		}},
		{Name: "edited", NoConfig: true, Acts: []Act{bucketCreated(ready), serviceEdited, bucketDeleted}},
		{Name: "default-endpoint", NoConfig: true, Acts: []Act{bucketCreated(ready), resized, bucketDeleted}},
		{Name: "slow", ActivateAfter: 250 * time.Millisecond, Acts: []Act{
			configCreated, clocked(bucketCreated(ready)), bucketDeleted, configDeleted,
		}},
		{Name: "unfinished", ActivateAfter: time.Hour, Acts: []Act{
			configCreated, clocked(bucketCreated(provisioning)), clocked(bucketDeleted), configDeleted,
		}},
		{Name: "refused", Region: noSuchPlace, Acts: []Act{configCreated, bucketCreated(refused), bucketDeleted, configDeleted}},
		{Name: "config-first", Acts: []Act{configCreated, bucketCreated(ready), configDeletedInUse, secretDeletedInUse, bucketDeleted, configDeleted}},
		{Name: "bucket-first", Racing: true, Acts: []Act{bucketCreated(unresolved), configCreatedFor(ready), bucketDeleted, configDeleted}},
		{Name: "foreign", Racing: true, Acts: []Act{configCreated, foreignMade, bucketCreated(conflicting), foreignGone, bucketDeleted, configDeleted}},
	}
}

func clocked(act Act) Act {
	act.Clocked = true
	return act
}

var configCreated = configCreatedFor(configReady)

func configCreatedFor(until func(*run) string) Act {
	return Act{
		Name: "create the configuration",
		Do:   func(r *run) { r.createConfig() },
		Until: func(r *run) string {
			if why := configReady(r); why != "" {
				return why
			}
			return until(r)
		},
	}
}

func (r *run) createConfig() {
	r.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName}, StringData: map[string]string{"apiKey": firstKey}})
	r.create(&storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: configName},
		Spec:       storagev1.BucketProviderConfigSpec{Endpoint: r.world.URL, SecretRef: storagev1.SecretReference{Name: secretName}},
	})
}

func bucketCreated(until func(*run) string) Act {
	return Act{Name: createBucket, Do: (*run).createBucket, Until: until}
}

func (r *run) createBucket() {
	r.create(&storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Name: bucketName},
		Spec:       storagev1.StorageBucketSpec{Region: r.scenario.region(), SizeGB: 100, Encrypted: new(true)},
	})
}

var resized = Act{
	Name: "resize the bucket",
	Do: func(r *run) {
		change(r, bucketName, &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) { b.Spec.SizeGB = 200 })
	},
	Until: ready,
}

var rateLimited = Act{
	Name: "change the rate limit",
	Do: func(r *run) {
		r.rememberRevision()
		change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit.QPS = 500 })
	},
	Until: compared,
}

var endpointMoved = Act{
	Name: "change the endpoint's path",
	Do: func(r *run) {
		r.rememberRevision()
		change(r, configName, &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.Endpoint += "/" })
	},
	Until: compared,
}

var keyRotated = Act{
	Name: "rotate the provider's key",
	Do: func(r *run) {
		r.rememberRevision()
		r.world.Provider.SetAPIKeys(map[string]string{secondKey: account, probeKey: account})
		change(r, secretName, &corev1.Secret{}, func(s *corev1.Secret) { s.Data["apiKey"] = []byte(secondKey) })
	},
	Until: compared,
}

func (r *run) rememberRevision() {
	if bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName); bucket != nil {
		r.memo["revision"] = bucket.Status.Provider.Revision
	}
}

// compared: the bucket was compared through the configuration as it is now.
func compared(r *run) string {
	if why := configReady(r); why != "" {
		return why
	}
	if why := ready(r); why != "" {
		return why
	}
	if of[*storagev1.StorageBucket](r, kindBucket, bucketName).Status.Provider.Revision == r.memo["revision"] {
		return "the bucket was not compared through the changed configuration"
	}
	return ""
}

var accessEdited = Act{
	Name:  "edit the access Secret",
	Do:    editAccess,
	Until: ready,
}

func editAccess(r *run) {
	change(r, accessName, &corev1.Secret{}, func(s *corev1.Secret) {
		s.Data["id"] = []byte("somebody-elses")
		delete(s.Data, "uri")
	})
}

var accessDeleted = Act{
	Name:  "delete the access Secret",
	Do:    func(r *run) { r.remove(accessName, &corev1.Secret{}) },
	Until: ready,
}

var serviceUnlabeled = Act{
	Name: "take the label off the Service",
	// The label is what makes the operator's cache see the Service at all.
	Do:    func(r *run) { change(r, bucketName, &corev1.Service{}, func(s *corev1.Service) { s.Labels = nil }) },
	Until: ready,
}

var serviceDeleted = Act{
	Name:  "delete the Service",
	Do:    func(r *run) { r.remove(bucketName, &corev1.Service{}) },
	Until: ready,
}

var serviceEdited = Act{
	Name: "edit the Service",
	Do: func(r *run) {
		change(r, bucketName, &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports[0].Port++ })
	},
	Until: ready,
}

var vanished = Act{
	Name: "the bucket vanishes at the provider",
	Do: func(r *run) {
		bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName)
		r.mu.Lock()
		r.lostByAct[bucket.Status.ID] = true
		r.mu.Unlock()
		r.memo["vanished"] = bucket.Status.ID
		if _, err := r.world.Provider.Vanish(bucket.Status.ID); err != nil {
			r.t.Fatal(err)
		}
		r.resync = stabilityResync
		r.restart()
	},
	Until: func(r *run) string {
		if why := ready(r); why != "" {
			return why
		}
		if of[*storagev1.StorageBucket](r, kindBucket, bucketName).Status.ID == r.memo["vanished"] {
			return "the bucket that vanished is still in the status"
		}
		return ""
	},
	Clocked: true,
}

var bucketDeleted = Act{
	Name: deleteBucket,
	Do:   func(r *run) { r.remove(bucketName, &storagev1.StorageBucket{}) },
	Until: func(r *run) string {
		if r.recorder.get(kindBucket, bucketName) == nil {
			r.removeForeign() // what a run that was cut short has left
		}
		if config := r.recorder.get(kindConfig, configName); config != nil && !config.GetDeletionTimestamp().IsZero() {
			return "the configuration, which has waited for this, is still there"
		}
		if secret := r.recorder.get(kindSecret, secretName); secret != nil && !secret.GetDeletionTimestamp().IsZero() {
			return "the provider's Secret, which has waited for this, is still there"
		}
		return bucketGone(r)
	},
	Teardown: true,
}

func bucketGone(r *run) string {
	if r.recorder.get(kindBucket, bucketName) != nil {
		return "the bucket is still there"
	}
	for kind, name := range map[string]string{kindSecret: accessName, kindService: bucketName} {
		if r.recorder.get(kind, name) != nil {
			return name + " was not collected"
		}
	}
	return ""
}

var configDeleted = Act{
	Name: deleteConfig,
	Do: func(r *run) {
		r.remove(configName, &storagev1.BucketProviderConfig{})
		r.remove(secretName, &corev1.Secret{})
	},
	Until:      configGone,
	Teardown:   true,
	EndsConfig: true,
}

func configGone(r *run) string {
	if r.recorder.get(kindConfig, configName) != nil {
		return "the configuration is still there"
	}
	if r.recorder.get(kindSecret, secretName) != nil {
		return "the provider's Secret is still there"
	}
	return ""
}

var configDeletedInUse = Act{
	Name: "delete the configuration while the bucket uses it",
	Do:   func(r *run) { r.remove(configName, &storagev1.BucketProviderConfig{}) },
	Until: func(r *run) string {
		config := of[*storagev1.BucketProviderConfig](r, kindConfig, configName)
		if config == nil || !meta.IsStatusConditionTrue(config.Status.Conditions, conditionDeletionBlocked) {
			return "the configuration is not kept"
		}
		return ready(r)
	},
	EndsConfig: true,
}

// Apart from the configuration's deletion: the bucket's status names a revision
// of both, and two changes at once are one for it, or two, as it happens.
var secretDeletedInUse = Act{
	Name: "delete its Secret as well",
	Do:   func(r *run) { r.remove(secretName, &corev1.Secret{}) },
	Until: func(r *run) string {
		secret := r.recorder.get(kindSecret, secretName)
		if secret == nil || secret.GetDeletionTimestamp().IsZero() {
			return "the Secret is not being deleted, and kept"
		}
		return ready(r)
	},
	EndsConfig: true,
}

var foreignMade = Act{
	Name: "somebody takes the names",
	Do: func(r *run) {
		// The Secret even has a controller of the bucket's name.
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: bucketName}}
		r.create(owner)
		r.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: accessName, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true),
			}}},
			StringData: map[string]string{"mine": "stays"},
		})
		r.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: bucketName}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: "mine.example.com",
		}})
	},
	Until: func(*run) string { return "" },
}

func conflicting(r *run) string {
	bucket := of[*storagev1.StorageBucket](r, kindBucket, bucketName)
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

var foreignGone = Act{
	Name:  "they give the names back",
	Do:    (*run).removeForeign,
	Until: ready,
}

func (r *run) removeForeign() {
	if secret := r.recorder.get(kindSecret, accessName); isForeign(secret) {
		r.remove(accessName, &corev1.Secret{})
		r.remove(bucketName, &corev1.ConfigMap{})
	}
	if service := r.recorder.get(kindService, bucketName); isForeign(service) {
		r.remove(bucketName, &corev1.Service{})
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
