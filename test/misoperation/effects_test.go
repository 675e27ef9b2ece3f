package misoperation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// effect changes one field and checks what follows from it outside the object
// or, for a field of the status, that it tells what is so.
type effect func(*testing.T, *arena)

// effects maps each field to its effect. Fields of conditions share one.
var effects = map[string]map[string]effect{
	"storagebuckets": {
		"spec.region":         regionIsWhereTheBucketIs,
		"spec.sizeGB":         sizeIsTheBucketsSize,
		"spec.encrypted":      encryptedIsHowTheBucketIsMade,
		"spec.providerRef":    providerRefChoosesTheProvider,
		"spec.deletionPolicy": retainKeepsTheBucket,

		"spec.inheritedMetadata.labels":      inheritedMetadataIsOnWhatIsOwned,
		"spec.inheritedMetadata.annotations": inheritedMetadataIsOnWhatIsOwned,

		"status.observedGeneration": statusTellsOfTheNewestSpec,
		"status.phase":              phaseFollowsTheProvider,
		"status.id":                 statusTellsWhatIsThere,
		"status.endpoint":           statusTellsWhatIsThere,
		"status.region":             statusTellsWhatIsThere,
		"status.sizeGB":             statusTellsWhatIsThere,
		"status.encrypted":          statusTellsWhatIsThere,
		"status.binding.name":       statusTellsWhatIsThere,
		"status.provider.name":      statusTellsWhatIsThere,
		"status.provider.revision":  revisionFollowsConfigAndSecret,
		"status.createOutcome":      createOutcomeTellsThatNothingWasMade,
		"status.vanishedID":         vanishedIDIsKeptUntilAnotherIsMade,
		"status.conditions[]":       conditionsAreComplete,
	},
	"bucketproviderconfigs": {
		"spec.type":            typeIsTheProtocol,
		"spec.endpoint":        endpointIsWhereCallsGo,
		"spec.secretRef.name":  secretRefIsTheKeyThatIsSent,
		"spec.rateLimit.qps":   rateHoldsCallsBack,
		"spec.rateLimit.burst": burstLetsCallsThrough,
		"spec.resyncInterval":  resyncIntervalFindsWhatVanished,

		"status.observedGeneration": statusTellsOfTheNewestSpec,
		"status.conditions[]":       conditionsAreComplete,
	},
}

// TestEveryFieldHasAnEffect fails for a field that has none in the table, and
// for one in the table that is no field any more.
func TestEveryFieldHasAnEffect(t *testing.T) {
	t.Parallel()
	for resource, table := range effects {
		used := map[string]bool{}
		for _, leaf := range leaves(t, resource) {
			if i := strings.Index(leaf, "[]"); i >= 0 {
				leaf = leaf[:i+2]
			}
			used[leaf] = true
			if table[leaf] == nil {
				t.Errorf("%s of %s has no effect that is checked: add it to the table", leaf, resource)
			}
		}
		for leaf := range table {
			if !used[leaf] {
				t.Errorf("%s have no field %s", resource, leaf)
			}
		}
	}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	for resource, table := range effects {
		for leaf, check := range table {
			t.Run(resource+" "+leaf, func(t *testing.T) {
				t.Parallel()
				check(t, newArena(t))
			})
		}
	}
}

// with is an object with one field changed.
func with(t *testing.T, object *unstructured.Unstructured, path string, value any) *unstructured.Unstructured {
	t.Helper()
	if err := (mistake{path: path, value: value}).in(object); err != nil {
		t.Fatal(err)
	}
	return object
}

// made creates a bucket and waits until it is Ready.
func (a *arena) made(t *testing.T, bucket *unstructured.Unstructured) *storagev1.StorageBucket {
	t.Helper()
	a.Create(t, bucket)
	t.Cleanup(func() { a.discard(bucket.GetName()) })
	a.ready(t, bucket.GetName())
	return a.Bucket(t, bucket.GetName())
}

// discard removes a bucket behind the operator's back, at a test's end.
func (a *arena) discard(name string) {
	b := &storagev1.StorageBucket{}
	if a.Client.Get(context.Background(), client.ObjectKey{Namespace: a.Namespace, Name: name}, b) == nil {
		_, _ = a.Provider.Vanish(b.Status.ID)
	}
}

// atProvider is the bucket as the provider has it.
func (a *arena) atProvider(t *testing.T, id string) mockprovider.Bucket {
	t.Helper()
	for _, b := range a.Provider.Buckets() {
		if b.ID == id {
			return b
		}
	}
	t.Fatalf("the provider has no bucket %q", id)
	return mockprovider.Bucket{}
}

func regionIsWhereTheBucketIs(t *testing.T, a *arena) {
	for i, region := range []string{"eu-west-1", "us-west-2"} {
		b := a.made(t, with(t, a.bucket(fmt.Sprintf("photos-%d", i), goodConfig), "spec.region", region))
		if got := a.atProvider(t, b.Status.ID).Region; got != region {
			t.Errorf("the bucket is in %s, want %s", got, region)
		}
	}
}

func sizeIsTheBucketsSize(t *testing.T, a *arena) {
	b := a.made(t, a.bucket("photos", goodConfig))
	for _, size := range []int64{200, 300} {
		a.put(t, with(t, a.bucket("photos", goodConfig), "spec.sizeGB", size))
		a.ready(t, "photos")
		if got := a.atProvider(t, b.Status.ID).SizeGB; int64(got) != size {
			t.Errorf("the bucket has %d GB, want %d", got, size)
		}
	}
}

func encryptedIsHowTheBucketIsMade(t *testing.T, a *arena) {
	for i, encrypted := range []bool{true, false} {
		b := a.made(t, with(t, a.bucket(fmt.Sprintf("photos-%d", i), goodConfig), "spec.encrypted", encrypted))
		if got := a.atProvider(t, b.Status.ID).Encrypted; got != encrypted {
			t.Errorf("the bucket is encrypted: %t, want %t", got, encrypted)
		}
	}
}

func providerRefChoosesTheProvider(t *testing.T, a *arena) {
	a.Create(t, testkit.Secret("other", "another-key"), with(t, a.config("other"), "spec.secretRef.name", "other"))
	for config, account := range map[string]string{goodConfig: "tenant", "other": "other"} {
		b := a.made(t, a.bucket("at-"+config, config))
		if got := a.atProvider(t, b.Status.ID).Account; got != account {
			t.Errorf("the bucket of %s is of account %s, want %s", config, got, account)
		}
	}
}

func retainKeepsTheBucket(t *testing.T, a *arena) {
	for _, policy := range []string{"Delete", "Retain"} {
		bucket := with(t, a.bucket(strings.ToLower(policy), goodConfig), "spec.deletionPolicy", policy)
		id := a.made(t, bucket).Status.ID
		a.remove(t, bucket)
		kept, err := a.Provider.Vanish(id)
		if err != nil || kept != (policy == "Retain") {
			t.Errorf("with policy %s the bucket was kept: %t, %v", policy, kept, err)
		}
	}
}

func inheritedMetadataIsOnWhatIsOwned(t *testing.T, a *arena) {
	bucket := with(t, a.bucket("inheriting", goodConfig), "spec.inheritedMetadata.labels", map[string]any{"team": "media"})
	a.made(t, with(t, bucket, "spec.inheritedMetadata.annotations", map[string]any{"example.com/cost-center": "4711"}))
	testkit.WaitFor(t, a.World, "inheriting-access", &corev1.Secret{}, func(s *corev1.Secret) string {
		if s.Labels["team"] != "media" || s.Annotations["example.com/cost-center"] != "4711" {
			return fmt.Sprintf("the Secret has the labels %v and the annotations %v", s.Labels, s.Annotations)
		}
		return ""
	})
}

func statusTellsOfTheNewestSpec(t *testing.T, a *arena) {
	a.made(t, a.bucket("photos", goodConfig))
	a.put(t, with(t, a.bucket("photos", goodConfig), "spec.sizeGB", int64(200)))
	a.put(t, with(t, a.config(goodConfig), "spec.resyncInterval", "2h"))
	testkit.Eventually(t, func(context.Context) string {
		b, c := a.Bucket(t, "photos"), a.Config(t, goodConfig)
		if b.Generation < 2 || b.Status.ObservedGeneration != b.Generation || c.Generation < 2 || c.Status.ObservedGeneration != c.Generation {
			return fmt.Sprintf("observed is %d of %d and %d of %d", b.Status.ObservedGeneration, b.Generation, c.Status.ObservedGeneration, c.Generation)
		}
		return ""
	})
}

func phaseFollowsTheProvider(t *testing.T, a *arena) {
	b := a.made(t, a.bucket("photos", goodConfig))
	if b.Status.Phase != storagev1.BucketPhaseActive {
		t.Errorf("phase is %s, want Active", b.Status.Phase)
	}
	if _, err := a.Provider.SetPhase(b.Status.ID, mockprovider.Failed, "a disk is broken"); err != nil {
		t.Fatal(err)
	}
	a.put(t, with(t, a.bucket("photos", goodConfig), "spec.sizeGB", int64(101)))
	testkit.Eventually(t, func(context.Context) string {
		if got := a.Bucket(t, "photos").Status.Phase; got != storagev1.BucketPhaseFailed {
			return fmt.Sprintf("phase is %s, want Failed", got)
		}
		return ""
	})
}

func statusTellsWhatIsThere(t *testing.T, a *arena) {
	b := a.made(t, a.bucket("photos", goodConfig))
	there, s := a.atProvider(t, b.Status.ID), b.Status
	if s.Region != there.Region || s.SizeGB != there.SizeGB || s.Encrypted == nil || *s.Encrypted != there.Encrypted {
		t.Errorf("the status is %+v, the provider has %+v", s, there)
	}
	if s.Endpoint != a.URL || s.Provider.Name != goodConfig {
		t.Errorf("the status names %s at %s, want %s at %s", s.Provider.Name, s.Endpoint, goodConfig, a.URL)
	}
	secret := &corev1.Secret{}
	if err := a.Client.Get(t.Context(), client.ObjectKey{Namespace: a.Namespace, Name: s.Binding.Name}, secret); err != nil {
		t.Fatalf("reading the Secret that the status names: %v", err)
	}
	if got := string(secret.Data["id"]); got != s.ID {
		t.Errorf("the Secret has the id %q, want %q", got, s.ID)
	}
}

func revisionFollowsConfigAndSecret(t *testing.T, a *arena) {
	b := a.made(t, a.bucket("photos", goodConfig))
	for what, change := range map[string]func(){
		"the configuration": func() { a.put(t, with(t, a.config(goodConfig), "spec.resyncInterval", "2h")) },
		"the Secret":        func() { a.setSecret(t, goodSecret, map[string][]byte{"apiKey": []byte(goodKey), "more": []byte("a")}) },
	} {
		before := a.Bucket(t, "photos").Status.Provider.Revision
		change()
		testkit.Eventually(t, func(context.Context) string {
			if after := a.Bucket(t, b.Name).Status.Provider.Revision; after == before || after == "" {
				return fmt.Sprintf("after a change of %s the revision is %q as before", what, after)
			}
			return ""
		})
	}
}

func createOutcomeTellsThatNothingWasMade(t *testing.T, a *arena) {
	bucket := with(t, a.bucket("photos", goodConfig), "spec.region", "no-such-region")
	a.Create(t, bucket)
	a.waitFor(t, "photos", "no-such-region")
	if got := a.Bucket(t, "photos").Status.CreateOutcome; got != storagev1.CreateOutcomeRefused {
		t.Errorf("createOutcome is %q, want Refused", got)
	}
	a.Provider.ResetCalls()
	a.remove(t, bucket)
	if calls := a.Provider.Calls(); len(calls) > 0 {
		t.Errorf("deleting what was never made took calls: %+v", calls)
	}
}

func conditionsAreComplete(t *testing.T, a *arena) {
	b := a.made(t, a.bucket("photos", goodConfig))
	var config *storagev1.BucketProviderConfig
	testkit.Eventually(t, func(context.Context) string {
		if config = a.Config(t, goodConfig); !meta.IsStatusConditionTrue(config.Status.Conditions, "Ready") {
			return "the configuration is not Ready"
		}
		return ""
	})
	for _, c := range slices.Concat(b.Status.Conditions, config.Status.Conditions) {
		// The provider of this test is on loopback, which no pod reaches.
		want := metav1.ConditionTrue
		if c.Type == storagev1.ConditionEndpointReachable {
			want = metav1.ConditionFalse
		}
		if c.Status != want || c.Reason == "" || c.ObservedGeneration == 0 || c.LastTransitionTime.IsZero() {
			t.Errorf("a condition of Ready objects is %+v", c)
		}
	}
	want := []string{
		"ProviderResolved", "Provisioned", "CredentialsReady", "EndpointReady", "Ready", "SizeApplied", "EncryptionApplied", "EndpointReachable",
		"EndpointAllowed", "SecretReady",
	}
	for _, name := range want {
		if meta.FindStatusCondition(slices.Concat(b.Status.Conditions, config.Status.Conditions), name) == nil {
			t.Errorf("there is no condition %s", name)
		}
	}
}

func typeIsTheProtocol(t *testing.T, a *arena) {
	a.Create(t, with(t, a.config("plain"), "spec.type", "HTTP"))
	a.Provider.ResetCalls()
	b := a.made(t, a.bucket("photos", "plain"))
	for _, call := range a.Provider.Calls() {
		if call.Operation == mockprovider.Create && call.ID == b.Status.ID && call.Path == "/buckets" {
			return
		}
	}
	t.Errorf("the bucket was not made by the HTTP protocol: %+v", a.Provider.Calls())
}

func endpointIsWhereCallsGo(t *testing.T, a *arena) {
	other := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{goodKey: "tenant"}})
	a.Create(t, with(t, a.config("other"), "spec.endpoint", other.URL))
	a.Create(t, a.bucket("photos", "other"))
	testkit.Eventually(t, func(context.Context) string {
		if here, there := len(a.Provider.Buckets()), len(other.Provider.Buckets()); here != 0 || there != 1 {
			return fmt.Sprintf("%d buckets are at the one provider and %d at the other, want 0 and 1", here, there)
		}
		return ""
	})
}

func secretRefIsTheKeyThatIsSent(t *testing.T, a *arena) {
	a.Create(t, testkit.Secret("other", "another-key"), with(t, a.config("other"), "spec.secretRef.name", "other"))
	b := a.made(t, a.bucket("photos", "other"))
	if got := a.atProvider(t, b.Status.ID).Account; got != "other" {
		t.Errorf("the call was that of %s, want other", got)
	}
}

// crowd is how many buckets are made at once to meet a rate limit: with one
// call a second, the last waits longer than what is not worth telling.
const crowd = 6

func (a *arena) makeCrowd(t *testing.T, rateLimit map[string]any) (names []string) {
	t.Helper()
	a.Create(t, with(t, a.config("limited"), "spec.rateLimit", rateLimit))
	for i := range crowd {
		names = append(names, fmt.Sprintf("bucket-%d", i))
		a.Create(t, a.bucket(names[i], "limited"))
		t.Cleanup(func() { a.discard(names[i]) })
	}
	return names
}

func rateHoldsCallsBack(t *testing.T, a *arena) {
	names := a.makeCrowd(t, map[string]any{"qps": int64(1), "burst": int64(1)})
	testkit.Eventually(t, func(context.Context) string {
		for _, name := range names {
			if a.Bucket(t, name).Status.CreateOutcome == storagev1.CreateOutcomeNotSent {
				return ""
			}
		}
		return "no bucket waits for the rate limit"
	})
	// Each limit is lifted at once for those who wait.
	a.put(t, a.config("limited"))
	for _, name := range names {
		a.ready(t, name)
	}
}

func burstLetsCallsThrough(t *testing.T, a *arena) {
	for _, name := range a.makeCrowd(t, map[string]any{"qps": int64(1), "burst": int64(1000)}) {
		a.ready(t, name)
		for _, c := range a.Bucket(t, name).Status.Conditions {
			if c.Reason == "RateLimited" {
				t.Errorf("%s waited for the rate limit", name)
			}
		}
	}
}

func resyncIntervalFindsWhatVanished(t *testing.T, a *arena) {
	a.Create(t, with(t, a.config("watchful"), "spec.resyncInterval", "1s"))
	id := a.made(t, a.bucket("photos", "watchful")).Status.ID
	if _, err := a.Provider.Vanish(id); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func(context.Context) string {
		if b := a.Bucket(t, "photos"); b.Status.ID == id || b.Status.ID == "" {
			return "no other bucket took the place of the one that vanished"
		}
		return ""
	})
	a.ready(t, "photos")
}

func vanishedIDIsKeptUntilAnotherIsMade(t *testing.T, a *arena) {
	id := a.made(t, a.bucket("photos", goodConfig)).Status.ID
	down := a.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Fault: mockprovider.Fault{Status: 500}})
	if _, err := a.Provider.Vanish(id); err != nil {
		t.Fatal(err)
	}
	a.put(t, with(t, a.bucket("photos", goodConfig), "spec.sizeGB", int64(101)))
	testkit.Eventually(t, func(context.Context) string {
		if got := a.Bucket(t, "photos").Status; got.VanishedID != id || got.ID != "" {
			return fmt.Sprintf("vanishedID is %q and id %q, want %q and none", got.VanishedID, got.ID, id)
		}
		return ""
	})
	down.Remove()
	a.ready(t, "photos")
	if got := a.Bucket(t, "photos").Status.VanishedID; got != "" {
		t.Errorf("vanishedID is %q although another bucket was made", got)
	}
}
