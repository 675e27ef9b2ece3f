package misoperation_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestNames gives both kinds names that do not suit what is made of them.
func TestNames(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	// A bucket's name is that of its Service, so it is bound as one.
	for what, name := range map[string]string{
		"with a dot": "media.assets", "64 letters": strings.Repeat("a", 64), "253 letters": strings.Repeat("a", 253), "a digit first": "1media",
		"a hyphen last": "media-", "a capital": "Media", "a blank": "a b", "a slash": "a/b", "an underscore": "a_b", "a way up": "..", "another script": "bücket",
	} {
		t.Run("StorageBucket "+what, func(t *testing.T) {
			t.Parallel()
			err := a.Client.Create(t.Context(), a.bucket(name, goodConfig))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.name") {
				t.Errorf("the answer was %v, want a refusal that names metadata.name", err)
			}
		})
	}
	for i, name := range []string{"a", "1", "with.dots.and-hyphens", strings.Repeat("a", 253), "1.2.3.4"} {
		t.Run("BucketProviderConfig "+name[:min(len(name), 20)], func(t *testing.T) {
			t.Parallel()
			config, bucket := a.config(name), a.bucket(fmt.Sprintf("bucket-%d", i), name)
			a.Create(t, bucket, config) // in the wrong order
			a.ready(t, bucket.GetName())
			a.remove(t, bucket)
			a.remove(t, config)
		})
	}
	for what, name := range map[string]string{"1 letter": "a", "63 letters": strings.Repeat("b", 63), "a name like a suffix": "a-access"} {
		t.Run("StorageBucket "+what, func(t *testing.T) {
			t.Parallel()
			bucket := a.bucket(name, goodConfig)
			a.Create(t, bucket)
			a.ready(t, name)
			a.remove(t, bucket)
		})
	}
}

// ready waits until a bucket is Ready for its present spec.
func (a *arena) ready(t *testing.T, bucket string) {
	t.Helper()
	a.waitFor(t, bucket, "")
}
