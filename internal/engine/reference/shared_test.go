package reference_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/engine/reference"
)

// slowReader answers after 10 ms, with the number of the question as the version.
type slowReader struct {
	client.Reader
	asked atomic.Int32
}

func (r *slowReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetGeneration(int64(r.asked.Add(1)))
	<-time.After(10 * time.Millisecond) // of the test's own time
	return nil
}

func TestAReadServesAllPassesThatBeganBeforeItWasSentAndNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		live := &slowReader{}
		shared := &reference.SharedReader[*corev1.Secret]{
			Live: live, New: func() *corev1.Secret { return &corev1.Secret{} }, Clock: clock.RealClock{},
		}
		key := types.NamespacedName{Namespace: "here", Name: "config"}
		get := func(began time.Time) int64 {
			obj, err := shared.Get(t.Context(), key, began)
			if err != nil {
				t.Error(err)
				return 0
			}
			return obj.GetGeneration()
		}
		early := time.Now()
		<-time.After(time.Millisecond)
		if got := get(early); got != 1 {
			t.Fatalf("the first pass got answer %d", got)
		}
		if got := get(early); got != 1 {
			t.Errorf("a pass that began before the first read was sent got answer %d, want that one", got)
		}
		late := time.Now()
		<-time.After(time.Millisecond)
		answers := make(chan int64)
		for range 5 {
			go func() { answers <- get(late) }()
		}
		for range 5 {
			if got := <-answers; got != 2 {
				t.Errorf("a pass that began after the first read got answer %d, want the second", got)
			}
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := shared.Get(canceled, key, time.Now()); err == nil {
			t.Error("a pass that was told to stop got an answer")
		}
		<-time.After(time.Second) // until the last answer is there
	})
}
