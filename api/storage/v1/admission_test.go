package v1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// creation is an object that somebody wants to create.
type creation struct {
	edits []edit
	// refusal is what the refusal says, the field's path first; empty means accepted.
	refusal []string
}

func accepted(edits ...edit) creation { return creation{edits: edits} }

func (c creation) refusedWith(words ...string) creation {
	c.refusal = words
	return c
}

func refused(path string, edits ...edit) creation {
	return creation{edits: edits, refusal: []string{path}}
}

func testCreations(t *testing.T, build func(*testing.T, string, ...edit) *unstructured.Unstructured, cases map[string]creation) {
	t.Helper()
	c, namespace := admin(t), testplane.Namespace(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.Create(t.Context(), build(t, namespace, tc.edits...), client.DryRunAll)
			if len(tc.refusal) > 0 {
				wantRefusal(t, err, tc.refusal...)
			} else if err != nil {
				t.Errorf("it was refused: %v", err)
			}
		})
	}
}

const serviceName = "metadata.name is also the name of the bucket's Service"

func TestStorageBucketsOnCreation(t *testing.T) {
	testCreations(t, bucketObject, map[string]creation{
		"the contract's manifest":     accepted(),
		"no encrypted":                accepted(unset("spec.encrypted")),
		"everything":                  accepted(set("spec.providerRef", "acme"), set("spec.deletionPolicy", "Retain")),
		"no spec":                     refused("spec: Required", unset("spec")),
		"spec null":                   refused("spec: Required", set("spec", nil)),
		"spec empty":                  refused("spec.region: Required", set("spec", map[string]any{})),
		"a field that nobody knows":   refused(`unknown field "spec.colour"`, set("spec.colour", "red")),
		"a misspelled field":          refused(`unknown field "spec.sizeGb"`, set("spec.sizeGb", int64(1))),
		"an unknown field at the top": refused(`unknown field "specification"`, set("specification", "a")),

		"region missing":                 refused("spec.region: Required", unset("spec.region")),
		"region null":                    refused("spec.region: Required", set("spec.region", nil)),
		"region empty":                   refused("spec.region", set("spec.region", "")),
		"region a number":                refused("spec.region", set("spec.region", int64(1))),
		"region of 1 character":          accepted(set("spec.region", "a")),
		"region of 63 characters":        accepted(set("spec.region", strings.Repeat("a", 63))),
		"region of 64 characters":        refused("spec.region: Too long", set("spec.region", strings.Repeat("a", 64))),
		"region beginning with a digit":  accepted(set("spec.region", "1-north")),
		"region in capitals":             refused("spec.region", set("spec.region", "US-EAST-1")),
		"region with a dot":              refused("spec.region", set("spec.region", "us.east")),
		"region with a slash":            refused("spec.region", set("spec.region", "us/east")),
		"region with a line break":       refused("spec.region", set("spec.region", "us-east-1\n")),
		"region ending with a hyphen":    refused("spec.region", set("spec.region", "us-")),
		"region beginning with a hyphen": refused("spec.region", set("spec.region", "-us")),

		"sizeGB missing":   refused("spec.sizeGB: Required", unset("spec.sizeGB")),
		"sizeGB 1":         accepted(set("spec.sizeGB", int64(1))),
		"sizeGB 0":         refused("spec.sizeGB", set("spec.sizeGB", int64(0))),
		"sizeGB -1":        refused("spec.sizeGB", set("spec.sizeGB", int64(-1))),
		"sizeGB a text":    refused("spec.sizeGB", set("spec.sizeGB", "100")),
		"sizeGB a part":    refused("spec.sizeGB", set("spec.sizeGB", 1.5)),
		"sizeGB 2^31-1":    accepted(set("spec.sizeGB", int64(1<<31-1))),
		"sizeGB 2^31":      refused("spec.sizeGB", set("spec.sizeGB", int64(1<<31))),
		"sizeGB 2^53+1":    refused("spec.sizeGB", set("spec.sizeGB", int64(1<<53+1))),
		"encrypted false":  accepted(set("spec.encrypted", false)),
		"encrypted a text": refused("spec.encrypted", set("spec.encrypted", "true")),
		"encrypted 1":      refused("spec.encrypted", set("spec.encrypted", int64(1))),

		"providerRef empty":                refused("spec.providerRef", set("spec.providerRef", "")),
		"providerRef with dots":            accepted(set("spec.providerRef", "a.b.c")),
		"providerRef of 253 characters":    accepted(set("spec.providerRef", strings.Repeat("a", 253))),
		"providerRef of 254 characters":    refused("spec.providerRef: Too long", set("spec.providerRef", strings.Repeat("a", 254))),
		"providerRef in capitals":          refused("spec.providerRef", set("spec.providerRef", "Acme")).refusedWith("spec.providerRef", "name of a BucketProviderConfig in the same namespace"),
		"providerRef of another namespace": refused("spec.providerRef", set("spec.providerRef", "other/acme")),
		"providerRef with a blank":         refused("spec.providerRef", set("spec.providerRef", "a b")),
		"providerRef an object":            refused("spec.providerRef", set("spec.providerRef", map[string]any{"name": "acme"})),

		"deletionPolicy Delete":        accepted(set("spec.deletionPolicy", "Delete")),
		"deletionPolicy of lower case": refused("spec.deletionPolicy", set("spec.deletionPolicy", "retain")),
		"deletionPolicy Orphan":        refused("spec.deletionPolicy", set("spec.deletionPolicy", "Orphan")).refusedWith("spec.deletionPolicy: Unsupported value", `"Delete", "Retain"`),
		"deletionPolicy empty":         refused("spec.deletionPolicy", set("spec.deletionPolicy", "")),

		"name of 1 character":          accepted(set("metadata.name", "a")),
		"name of 63 characters":        accepted(set("metadata.name", strings.Repeat("a", 63))),
		"name of 64 characters":        refused(serviceName, set("metadata.name", strings.Repeat("a", 64))),
		"name of 253 characters":       refused(serviceName, set("metadata.name", strings.Repeat("a", 253))),
		"name with a dot":              refused(serviceName, set("metadata.name", "media.assets")),
		"name beginning with a digit":  refused(serviceName, set("metadata.name", "1media")),
		"name ending with a digit":     accepted(set("metadata.name", "media1")),
		"name in capitals":             refused("metadata.name", set("metadata.name", "Media")),
		"a name that the server makes": accepted(unset("metadata.name"), set("metadata.generateName", "media-")),
	})
}

func TestBucketProviderConfigsOnCreation(t *testing.T) {
	endpoint := func(url string) edit { return set("spec.endpoint", url) }
	const noURL = "endpoint must be a URL such as https://buckets.example.com"
	refusedEndpoint := func(url string) creation { return accepted(endpoint(url)).refusedWith("spec.endpoint", noURL) }
	testCreations(t, configObject, map[string]creation{
		"the smallest":              accepted(),
		"everything":                accepted(set("spec.type", "HTTP"), set("spec.secretRef.name", "key"), set("spec.rateLimit", map[string]any{"qps": int64(1), "burst": int64(1)}), set("spec.resyncInterval", "10m")),
		"no spec":                   refused("spec: Required", unset("spec")),
		"a field that nobody knows": refused(`unknown field "spec.timeout"`, set("spec.timeout", "1s")),
		"name of 253 characters":    accepted(set("metadata.name", strings.Repeat("a", 253))),

		"type of lower case": refused("spec.type: Unsupported value", set("spec.type", "http")),
		"type S3":            refused("spec.type: Unsupported value", set("spec.type", "S3")),
		"type empty":         refused("spec.type", set("spec.type", "")),

		"endpoint missing":                  refused("spec.endpoint: Required", unset("spec.endpoint")),
		"endpoint empty":                    refused("spec.endpoint", endpoint("")),
		"endpoint of http":                  accepted(endpoint("http://buckets.example.com:8080/api/v1")),
		"endpoint with a slash":             accepted(endpoint("https://buckets.example.com/")),
		"endpoint of an IPv4 address":       accepted(endpoint("https://192.0.2.1:8443")),
		"endpoint of an IPv6 address":       accepted(endpoint("https://[2001:db8::1]:8443")),
		"endpoint of 2048 characters":       accepted(endpoint("https://a.example/" + strings.Repeat("a", 2048-18))),
		"endpoint of 2049 characters":       refused("spec.endpoint: Too long", endpoint("https://a.example/"+strings.Repeat("a", 2049-18))),
		"endpoint without scheme":           refusedEndpoint("buckets.example.com"),
		"endpoint without host":             refusedEndpoint("https://"),
		"endpoint of a file":                refusedEndpoint("file:///etc/passwd"),
		"endpoint of javascript":            refusedEndpoint("javascript:alert(1)"),
		"endpoint of ftp":                   refusedEndpoint("ftp://buckets.example.com"),
		"endpoint with a user":              refusedEndpoint("https://user@buckets.example.com"),
		"endpoint with a password":          refusedEndpoint("https://user:pass@buckets.example.com"),
		"endpoint with a query":             refusedEndpoint("https://buckets.example.com/?a=b"),
		"endpoint with a fragment":          refusedEndpoint("https://buckets.example.com/#a"),
		"endpoint with a line break":        refusedEndpoint("https://buckets.example.com/\r\nX-Evil: 1"),
		"endpoint beginning with a blank":   refusedEndpoint(" https://buckets.example.com"),
		"endpoint with a port of letters":   refusedEndpoint("https://buckets.example.com:http"),
		"endpoint with an unclosed bracket": refusedEndpoint("https://[2001:db8::1"),

		"secretRef empty":                  refused("spec.secretRef.name: Required", set("spec.secretRef", map[string]any{})),
		"secretRef a text":                 refused("spec.secretRef", set("spec.secretRef", "key")),
		"secretRef with a namespace":       refused(`unknown field "spec.secretRef.namespace"`, set("spec.secretRef", map[string]any{"name": "key", "namespace": "other"})),
		"secretRef.name empty":             refused("spec.secretRef.name", set("spec.secretRef.name", "")),
		"secretRef.name of 253 characters": accepted(set("spec.secretRef.name", strings.Repeat("a", 253))),
		"secretRef.name of 254 characters": refused("spec.secretRef.name: Too long", set("spec.secretRef.name", strings.Repeat("a", 254))),
		"secretRef.name of a path":         accepted(set("spec.secretRef.name", "../other/key")).refusedWith("spec.secretRef.name", "name of a Secret in the same namespace"),
		"secretRef.name in capitals":       refused("spec.secretRef.name", set("spec.secretRef.name", "Key")),

		"rateLimit empty":          accepted(set("spec.rateLimit", map[string]any{})), // the defaults fill it
		"rateLimit.qps alone":      accepted(set("spec.rateLimit.qps", int64(1))),
		"rateLimit.burst alone":    accepted(set("spec.rateLimit.burst", int64(1))),
		"rateLimit.qps 0":          refused("spec.rateLimit.qps", set("spec.rateLimit.qps", int64(0))),
		"rateLimit.qps 10000":      accepted(set("spec.rateLimit.qps", int64(10000))),
		"rateLimit.qps 10001":      refused("spec.rateLimit.qps", set("spec.rateLimit.qps", int64(10001))),
		"rateLimit.qps 2^31":       refused("spec.rateLimit.qps", set("spec.rateLimit.qps", int64(1<<31))),
		"rateLimit.qps a part":     refused("spec.rateLimit.qps", set("spec.rateLimit.qps", 0.5)),
		"rateLimit.burst 0":        refused("spec.rateLimit.burst", set("spec.rateLimit.burst", int64(0))),
		"rateLimit.burst 10000":    accepted(set("spec.rateLimit.burst", int64(10000))),
		"rateLimit.burst 10001":    refused("spec.rateLimit.burst", set("spec.rateLimit.burst", int64(10001))),
		"rateLimit.burst negative": refused("spec.rateLimit.burst", set("spec.rateLimit.burst", int64(-1))),

		"resyncInterval 1s":           accepted(set("spec.resyncInterval", "1s")),
		"resyncInterval 24h":          accepted(set("spec.resyncInterval", "24h")),
		"resyncInterval of parts":     accepted(set("spec.resyncInterval", "1h30m0.5s")),
		"resyncInterval 999ms":        refused("spec.resyncInterval", set("spec.resyncInterval", "999ms")).refusedWith("spec.resyncInterval", "between 1s and 24h"),
		"resyncInterval 24h1ms":       refused("spec.resyncInterval", set("spec.resyncInterval", "24h1ms")).refusedWith("spec.resyncInterval", "between 1s and 24h"),
		"resyncInterval 1d":           refused("spec.resyncInterval", set("spec.resyncInterval", "1d")),
		"resyncInterval negative":     refused("spec.resyncInterval", set("spec.resyncInterval", "-10m")),
		"resyncInterval without unit": refused("spec.resyncInterval", set("spec.resyncInterval", "600")),
		"resyncInterval a number":     refused("spec.resyncInterval", set("spec.resyncInterval", int64(600))),
		"resyncInterval of centuries": refused("spec.resyncInterval", set("spec.resyncInterval", "99999999999999999999h")),
		"resyncInterval of too much":  refused("spec.resyncInterval: Too long", set("spec.resyncInterval", strings.Repeat("1h", 17))),
		"resyncInterval empty":        refused("spec.resyncInterval", set("spec.resyncInterval", "")),
		"resyncInterval in capitals":  refused("spec.resyncInterval", set("spec.resyncInterval", "1H")),
		"resyncInterval with a blank": refused("spec.resyncInterval", set("spec.resyncInterval", "1h 30m")),
	})
}
