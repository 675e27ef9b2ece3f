package misoperation_test

import (
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

const (
	goodConfig = "acme"
	goodSecret = "provider-key"
	goodKey    = "a-good-key"

	// maxWrites bounds what the operator writes to one object in its life,
	// through two mistakes and back.
	maxWrites = 60
	// maxCalls bounds the calls to the provider with one idempotency key.
	maxCalls = 30
)

// arena is a world in which the operator runs and is watched.
type arena struct {
	*testkit.World

	mu       sync.Mutex
	writes   map[string]int // to objects
	failures map[string]int // of passes over StorageBuckets, by name
}

// newArena starts an operator, with a provider that wants an API key and a
// good configuration for it.
func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{
		World:  testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{goodKey: "tenant", "another-key": "other"}}),
		writes: map[string]int{}, failures: map[string]int{},
	}
	t.Cleanup(func() { a.checkLimits(t) }) // after the operator has stopped
	a.Start(t, testkit.Settings{WrapAPI: a.countWrites, WrapProvider: onlyLoopback, Log: a.watchLog(t)})
	a.Create(t, testkit.Secret(goodSecret, goodKey), a.config(goodConfig), a.config(storagev1.DefaultBucketProviderConfigName))
	return a
}

// config is a good BucketProviderConfig with every field set.
func (a *arena) config(name string) *unstructured.Unstructured {
	return a.object("BucketProviderConfig", name, map[string]any{
		"type": "HTTP", "endpoint": a.URL, "secretRef": map[string]any{"name": goodSecret},
		"rateLimit": map[string]any{"qps": int64(1000), "burst": int64(1000)}, "resyncInterval": "1h",
	})
}

// bucket is a good StorageBucket with every field set.
func (a *arena) bucket(name, config string) *unstructured.Unstructured {
	return a.object("StorageBucket", name, map[string]any{
		"region": "us-east-1", "sizeGB": int64(100), "encrypted": true, "providerRef": config, "deletionPolicy": "Delete",
	})
}

func (a *arena) object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": storagev1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": a.Namespace}, "spec": spec,
	}}
}

// countWrites counts what the operator writes to each object, events aside.
func (a *arena) countWrites(next http.RoundTripper) http.RoundTripper {
	return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if _, path, ok := strings.Cut(r.URL.Path, "/"+storagev1.GroupName+"/"); ok && r.Method != http.MethodGet {
			a.mu.Lock()
			a.writes[strings.TrimSuffix(path, "/status")]++
			a.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// checkLimits fails the test if the operator ran hot, or left something behind.
func (a *arena) checkLimits(t *testing.T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for object, writes := range a.writes {
		if writes > maxWrites {
			t.Errorf("the operator wrote %d times to %s, at most %d are in order", writes, object, maxWrites)
		}
	}
	calls := map[string]int{}
	for _, call := range a.Provider.Calls() {
		if call.Key != "" {
			calls[call.Key]++
		}
	}
	for key, n := range calls {
		if n > maxCalls {
			t.Errorf("the operator made %d calls with the key %s, at most %d are in order", n, key, maxCalls)
		}
	}
	if left := a.Provider.Buckets(); len(left) > 0 {
		t.Errorf("%d buckets are left at the provider: %+v", len(left), left)
	}
}

// failedBucket finds, in a line of the log, whose pass failed.
var failedBucket = regexp.MustCompile(`"Reconciler error".*"StorageBucket"=\{"name"="([^"]+)"`)

// watchLog fails the test when a pass panics, and counts those that fail.
func (a *arena) watchLog(t *testing.T) logr.Logger {
	return funcr.New(func(_, line string) {
		if strings.Contains(line, "panic") {
			t.Errorf("the operator panicked: %s", line)
		}
		if failed := failedBucket.FindStringSubmatch(line); failed != nil {
			a.mu.Lock()
			a.failures[failed[1]]++
			a.mu.Unlock()
		}
	}, funcr.Options{})
}

func (a *arena) failuresOf(bucket string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failures[bucket]
}

// onlyLoopback keeps the calls to any other host from leaving the machine:
// there is no such host.
func onlyLoopback(next http.RoundTripper) http.RoundTripper {
	return testkit.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if ip := net.ParseIP(r.URL.Hostname()); r.URL.Hostname() == "localhost" || ip.IsLoopback() {
			return next.RoundTrip(r)
		}
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}
	})
}

// remove deletes an object and waits until it is gone.
func (a *arena) remove(t *testing.T, object client.Object) {
	t.Helper()
	a.Remove(t, object)
	a.WaitGone(t, object)
}

// put gives an object the spec of another.
func (a *arena) put(t *testing.T, like *unstructured.Unstructured) {
	t.Helper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(like.GroupVersionKind())
	testkit.Modify(t, a.World, like.GetName(), live, func(o *unstructured.Unstructured) { o.Object["spec"] = like.DeepCopy().Object["spec"] })
}
