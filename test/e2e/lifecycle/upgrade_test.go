package lifecycle_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
)

// previousEnv names the manifests of the last release, whose image the node has.
const previousEnv = "BUCKETOPERATOR_E2E_PREVIOUS"

// snapshot is what an upgrade must leave as it is.
type snapshot struct {
	UIDs    map[string]types.UID             // of objects, and of what buckets own
	IDs     map[string]string                // of buckets at their providers
	Since   map[string]time.Time             // when Ready became what it is
	Buckets map[string][]installation.Bucket // of each provider
	Creates map[string]int                   // calls that make a bucket, to providers that answered one
}

func (s *states) snapshot(t *testing.T) snapshot {
	t.Helper()
	shot := snapshot{
		UIDs: map[string]types.UID{}, IDs: map[string]string{}, Since: map[string]time.Time{},
		Buckets: map[string][]installation.Bucket{}, Creates: map[string]int{},
	}
	in := client.InNamespace(s.namespace)
	buckets, configs := &storagev1.StorageBucketList{}, &storagev1.BucketProviderConfigList{}
	secrets, services := &corev1.SecretList{}, &corev1.ServiceList{}
	for _, list := range []client.ObjectList{buckets, configs, secrets, services} {
		if err := s.client.List(t.Context(), list, in); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range buckets.Items {
		shot.UIDs["bucket "+b.Name], shot.IDs[b.Name] = b.UID, b.Status.ID
		if c := meta.FindStatusCondition(b.Status.Conditions, "Ready"); c != nil {
			shot.Since[b.Name] = c.LastTransitionTime.Time
		}
	}
	for _, c := range configs.Items {
		shot.UIDs["config "+c.Name] = c.UID
	}
	for _, secret := range secrets.Items {
		shot.UIDs["secret "+secret.Name] = secret.UID
	}
	for _, service := range services.Items {
		shot.UIDs["service "+service.Name] = service.UID
	}
	for name, p := range map[string]*installation.Provider{defaultConfig: s.provider, slowConfig: s.slow, minimalConfig: s.minimal} {
		have, err := p.Buckets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shot.Buckets[name] = have
		if name == defaultConfig {
			continue // what it refuses is asked for again by a new operator
		}
		calls, err := p.Calls(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shot.Creates[name] = calls["Create"]
	}
	return shot
}

// expectSame compares the present with a snapshot.
func (s *states) expectSame(t *testing.T, before snapshot) {
	t.Helper()
	if diff := cmp.Diff(before, s.snapshot(t)); diff != "" {
		t.Errorf("the upgrade has changed what it must leave (-before +after):\n%s", diff)
	}
}

func TestAnUpgradeFromTheLastReleaseTakesUpEveryObjectAsItIs(t *testing.T) {
	manifests, err := os.ReadFile(os.Getenv(previousEnv))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("there is no last release to upgrade from: %s names the file %q, which `make e2e` makes where git has the revision", previousEnv, os.Getenv(previousEnv))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { installation.Remove(t) })
	installation.Apply(t, string(manifests))
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	s := makeStates(t)
	before := s.snapshot(t)

	installation.Apply(t, installation.Render(t, "default"))
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	s.waitLooked(t)
	s.settle(t)
	s.expectSame(t, before)

	// The new operator goes on with all of them.
	if err := s.provider.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	installation.WaitGone(t, s.client, s.bucket(t, terminating))
	s.patch(t, active, `{"spec":{"sizeGB":300}}`)
	s.wait(t, active, storagev1.ConditionSizeApplied, "True", "")
	for _, name := range []string{active, provisioning, refused, resizing} {
		b := s.bucket(t, name)
		if err := s.client.Delete(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		installation.WaitGone(t, s.client, b)
	}
	for _, p := range []*installation.Provider{s.provider, s.slow, s.minimal} {
		if left, err := p.Buckets(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("a provider still has %v (%v)", left, err)
		}
	}
}

// waitLooked waits until the new operator has looked at every object: at one made
// just now, when those from before were queued already.
func (s *states) waitLooked(t *testing.T) {
	t.Helper()
	probe := newBucket("probe", nowhereRegion, "")
	s.create(t, probe)
	s.wait(t, "probe", "Stalled", "True", "SpecRefused")
	if err := s.client.Delete(t.Context(), probe); err != nil {
		t.Fatal(err)
	}
	installation.WaitGone(t, s.client, probe)
}
