package fairqueue

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// BenchmarkHandOut is a hand-out with its Done and the next Add, while so many
// requests of so many namespaces wait.
func BenchmarkHandOut(b *testing.B) {
	for _, size := range []struct{ namespaces, requests int }{
		{1, 1000}, {1, 1_000_000}, {100, 10_000}, {10_000, 10_000}, {10_000, 1_000_000},
	} {
		b.Run(fmt.Sprintf("%d namespaces %d requests", size.namespaces, size.requests), func(b *testing.B) {
			q := newQueue(8)
			for i := range size.requests {
				q.Add(request(fmt.Sprint(i%size.namespaces), i))
			}
			running := make([]reconcile.Request, 8)
			for i := range running {
				running[i], _ = q.Get()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				r := &running[i%8]
				q.Done(*r)
				q.Add(*r)
				*r, _ = q.Get()
			}
			b.StopTimer()
			for _, r := range running {
				q.Done(r)
			}
			q.ShutDown()
		})
	}
}

// BenchmarkScrape is a scrape while so many namespaces wait.
func BenchmarkScrape(b *testing.B) {
	q := newQueue(8)
	for i := range 1_000_000 {
		q.Add(request(fmt.Sprint(i%10_000), i))
	}
	for b.Loop() {
		q.backlogs()
	}
}
