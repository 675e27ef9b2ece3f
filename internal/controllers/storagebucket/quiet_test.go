package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/operatortest"
)

// TestBehaviour08ConvergedObjectsCostNothing watches 50 converged buckets
// through things that happen to every cluster: a quiet interval, a restart,
// and others at work on labels. The interval is told by the world around: it
// is over when another operator, started after it began, has done a whole
// bucket's life.
func TestBehaviour08ConvergedObjectsCostNothing(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, operatortest.Settings{})
	w.Create(t, newConfig("default", w.URL, ""))
	const many = 50
	for i := range many {
		w.Create(t, newBucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range many {
		waitReady(t, w, fmt.Sprintf("bucket-%d", i))
	}
	operator.Stop(t)

	api, provider := &recorder{}, &recorder{}
	w.Start(t, operatortest.Settings{WrapAPI: api.wrap, WrapProvider: provider.wrap})
	// What proves that the operator is at work: it repairs a Secret.
	damage := func(i int) {
		name := fmt.Sprintf("bucket-%d-access", i)
		operatortest.Modify(t, w, name, &corev1.Secret{}, func(s *corev1.Secret) { s.Data["id"] = []byte("damaged") })
		waitFor(t, w, name, &corev1.Secret{}, func(s *corev1.Secret) string {
			return map[bool]string{true: "still damaged"}[string(s.Data["id"]) == "damaged"]
		})
	}
	damage(0)
	operatortest.Modify(t, w, "bucket-1", newBucket(""), func(b *storagev1.StorageBucket) { b.Labels = map[string]string{"team": "blue"} })
	aWholeLife(t)
	damage(2)

	var writes []string
	for _, r := range api.requests() {
		if r.writes() {
			writes = append(writes, r.method+" "+r.path[len("/api/v1/namespaces/")+len(w.Namespace):])
		}
	}
	want := []string{"PUT /secrets/bucket-0-access", "PUT /secrets/bucket-2-access"}
	if fmt.Sprint(writes) != fmt.Sprint(want) {
		t.Errorf("with %d converged objects the operator wrote %v, want only the repairs %v", many, writes, want)
	}
	if calls := provider.requests(); len(calls) != 0 {
		t.Errorf("with %d converged objects the operator made the provider calls %v", many, calls)
	}
}

// aWholeLife takes a bucket of another world from its creation to its end.
func aWholeLife(t *testing.T) {
	t.Helper()
	w := operatortest.NewWorld(t, mockprovider.Options{ActivateAfter: time.Second})
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("life"))
	waitReady(t, w, "life")
	remove(t, w, newBucket("life"))
	waitGone(t, w, newBucket("life"))
}

func TestBehaviour08AResyncIsOneCallAndNoWrite(t *testing.T) {
	t.Parallel()
	w := operatortest.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL})
	w.Create(t, newBucket("photos"))
	waitReady(t, w, "photos")
	operator.Stop(t)

	api, provider := &recorder{}, &recorder{}
	w.Start(t, operatortest.Settings{DefaultEndpoint: w.URL, Resync: 100 * time.Millisecond, WrapAPI: api.wrap, WrapProvider: provider.wrap})
	operatortest.Eventually(t, func(context.Context) string {
		if n := len(provider.requests()); n < 5 {
			return fmt.Sprintf("%d calls", n)
		}
		return ""
	})
	for _, r := range provider.requests() {
		if r.method != http.MethodGet {
			t.Errorf("a resync called %s %s", r.method, r.path)
		}
	}
	for _, r := range api.requests() {
		if r.writes() {
			t.Errorf("a resync wrote %s %s: %s", r.method, r.path, r.body)
		}
	}
}
