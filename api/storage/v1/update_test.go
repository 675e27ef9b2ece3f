package v1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestStorageBucketsOnChange(t *testing.T) {
	t.Parallel()
	created := set("status.id", "bucket-1")
	const bound = "providerRef cannot be changed once the bucket exists"
	for name, tc := range map[string]struct {
		before, change []edit
		// refusal is what the refusal says; empty means accepted.
		refusal []string
	}{
		"region":          {change: []edit{set("spec.region", "eu-west-1")}, refusal: []string{"spec.region", "region cannot be changed"}},
		"region removed":  {change: []edit{unset("spec.region")}, refusal: []string{"spec.region: Required"}},
		"region the same": {change: []edit{set("spec.region", "us-east-1")}},
		"sizeGB raised":   {change: []edit{set("spec.sizeGB", int64(101))}},
		// A mistaken growth must be possible to take back; the provider decides.
		"sizeGB lowered":         {before: []edit{created}, change: []edit{set("spec.sizeGB", int64(1))}},
		"sizeGB lowered to 0":    {change: []edit{set("spec.sizeGB", int64(0))}, refusal: []string{"spec.sizeGB"}},
		"encrypted":              {before: []edit{created}, change: []edit{set("spec.encrypted", false)}},
		"deletionPolicy":         {before: []edit{created}, change: []edit{set("spec.deletionPolicy", "Retain")}},
		"deletionPolicy removed": {before: []edit{created, set("spec.deletionPolicy", "Retain")}, change: []edit{unset("spec.deletionPolicy")}},

		"providerRef of no bucket yet": {before: []edit{set("spec.providerRef", "acme")}, change: []edit{set("spec.providerRef", "other")}},
		"providerRef of no bucket yet, whose status says something": {
			before: []edit{set("spec.providerRef", "acme"), set("status.phase", "Provisioning")}, change: []edit{set("spec.providerRef", "other")},
		},
		"providerRef of a bucket": {
			before: []edit{set("spec.providerRef", "acme"), created}, change: []edit{set("spec.providerRef", "other")},
			refusal: []string{"spec.providerRef", bound},
		},
		"providerRef of a bucket, added": {before: []edit{created}, change: []edit{set("spec.providerRef", "other")}, refusal: []string{"spec.providerRef", bound}},
		"providerRef of a bucket, removed": {
			before: []edit{set("spec.providerRef", "acme"), created}, change: []edit{unset("spec.providerRef")}, refusal: []string{"spec.providerRef", bound},
		},
		"another field of a bucket with providerRef": {
			before: []edit{set("spec.providerRef", "acme"), created}, change: []edit{set("spec.sizeGB", int64(200))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := admin(t)
			stored := store(t, c, bucketObject(t, testplane.Namespace(t), tc.before...))
			for _, e := range tc.change {
				e(t, stored)
			}
			err := c.Update(t.Context(), stored, client.DryRunAll)
			if len(tc.refusal) > 0 {
				wantRefusal(t, err, tc.refusal...)
			} else if err != nil {
				t.Errorf("the change was refused: %v", err)
			}
		})
	}
}

// store creates an object with its status, and returns it as it is stored.
func store(t *testing.T, c client.Client, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	status, hasStatus := object.Object["status"]
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("creating: %v", err)
	}
	if hasStatus {
		object.Object["status"] = status
		if err := c.Status().Update(t.Context(), object); err != nil {
			t.Fatalf("writing the status: %v", err)
		}
	}
	return object
}

func TestEverythingOfABucketProviderConfigMayChange(t *testing.T) {
	t.Parallel()
	c := admin(t)
	stored := store(t, c, configObject(t, testplane.Namespace(t), set("spec.secretRef.name", "key"), set("spec.resyncInterval", "1h")))
	for _, change := range []edit{
		set("spec.endpoint", "https://other.example.com"), set("spec.secretRef.name", "other"), unset("spec.secretRef"),
		set("spec.rateLimit.qps", int64(1)), unset("spec.rateLimit"), unset("spec.resyncInterval"),
	} {
		change(t, stored)
		if err := c.Update(t.Context(), stored); err != nil {
			t.Errorf("a change was refused: %v", err)
		}
	}
}
