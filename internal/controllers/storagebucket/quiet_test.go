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
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// TestBehaviour08ConvergedObjectsCostNothing watches 50 converged buckets
// through things that happen to every cluster: a quiet interval, a restart,
// and others at work on labels. The interval is told by the world around: it
// is over when another operator, started after it began, has done a whole
// bucket's life.
func TestBehaviour08ConvergedObjectsCostNothing(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Config("default", w.URL, ""))
	const many = 50
	for i := range many {
		w.Create(t, testkit.Bucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range many {
		w.WaitReady(t, fmt.Sprintf("bucket-%d", i))
	}
	operator.Stop(t)

	api, provider := &testkit.Recorder{}, &testkit.Recorder{}
	w.Start(t, testkit.Settings{WrapAPI: api.Wrap, WrapProvider: provider.Wrap})
	// What proves that the operator is at work: it repairs a Secret.
	damage := func(i int) {
		name := fmt.Sprintf("bucket-%d-access", i)
		testkit.Modify(t, w, name, &corev1.Secret{}, func(s *corev1.Secret) { s.Data["id"] = []byte("damaged") })
		testkit.WaitFor(t, w, name, &corev1.Secret{}, func(s *corev1.Secret) string {
			return map[bool]string{true: "still damaged"}[string(s.Data["id"]) == "damaged"]
		})
	}
	damage(0)
	testkit.Modify(t, w, "bucket-1", testkit.Bucket(""), func(b *storagev1.StorageBucket) { b.Labels = map[string]string{"team": "blue"} })
	aWholeLife(t)
	damage(2)

	var writes []string
	for _, r := range api.Requests() {
		if r.Writes() {
			writes = append(writes, r.Method+" "+r.Path[len("/api/v1/namespaces/")+len(w.Namespace):])
		}
	}
	want := []string{"PUT /secrets/bucket-0-access", "PUT /secrets/bucket-2-access"}
	if fmt.Sprint(writes) != fmt.Sprint(want) {
		t.Errorf("with %d converged objects the operator wrote %v, want only the repairs %v", many, writes, want)
	}
	if calls := provider.Requests(); len(calls) != 0 {
		t.Errorf("with %d converged objects the operator made the provider calls %v", many, calls)
	}
}

// aWholeLife takes a bucket of another world from its creation to its end.
func aWholeLife(t *testing.T) {
	t.Helper()
	w := testkit.NewWorld(t, mockprovider.Options{ActivateAfter: time.Second})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("life"))
	w.WaitReady(t, "life")
	w.Remove(t, testkit.Bucket("life"))
	w.WaitGone(t, testkit.Bucket("life"))
}

func TestBehaviour08AResyncIsOneCallAndNoWrite(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	operator.Stop(t)

	api, provider := &testkit.Recorder{}, &testkit.Recorder{}
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, Resync: 100 * time.Millisecond, WrapAPI: api.Wrap, WrapProvider: provider.Wrap})
	testkit.Eventually(t, func(context.Context) string {
		if n := len(provider.Requests()); n < 5 {
			return fmt.Sprintf("%d calls", n)
		}
		return ""
	})
	for _, r := range provider.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("a resync called %s %s", r.Method, r.Path)
		}
	}
	for _, r := range api.Requests() {
		if r.Writes() {
			t.Errorf("a resync wrote %s %s: %s", r.Method, r.Path, r.Body)
		}
	}
}
