package fairqueue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// workQueue is what a Queue and client-go's have in common.
type workQueue = workqueue.TypedInterface[reconcile.Request]

func plainQueue() workQueue { return workqueue.NewTyped[reconcile.Request]() }

// simulate has goroutines work, in virtual time, for a hog with 50 objects at a
// slow provider and 2,000 at a quick one, all there from the start, and for a
// good tenant that has one object each 10 ms for a second. It returns how long
// a good object waited at worst. It must run in a synctest bubble.
func simulate(q workQueue, goroutines int) (worst time.Duration) {
	for i := range 50 {
		q.Add(request("hog", i))
	}
	for i := range 2000 {
		q.Add(request("hog", 1000+i))
	}
	var mu sync.Mutex
	asked := map[reconcile.Request]time.Time{}
	var passes, good sync.WaitGroup
	for range goroutines {
		passes.Go(func() {
			for {
				r, shutdown := q.Get()
				if shutdown {
					return
				}
				if r.Namespace == "good" {
					mu.Lock()
					worst = max(worst, time.Since(asked[r]))
					mu.Unlock()
				}
				<-time.After(time.Millisecond)
				if r.Namespace == "hog" && len(r.Name) < 3 {
					resume := func() {}
					if fair, ok := q.(*Queue); ok {
						resume = fair.Yield(r)
					}
					<-time.After(9 * time.Second)
					resume()
					<-time.After(time.Millisecond)
				}
				q.Done(r)
			}
		})
	}
	good.Go(func() {
		for i := range 100 {
			<-time.After(10 * time.Millisecond)
			r := request("good", i)
			mu.Lock()
			asked[r] = time.Now()
			mu.Unlock()
			q.Add(r)
		}
	})
	good.Wait()
	q.ShutDown()
	passes.Wait()
	return worst
}
