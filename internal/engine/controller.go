package engine

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"avalonhosting.example/bucketoperator/internal/fairqueue"
)

// ControllerOptions say how a kind's controller runs.
type ControllerOptions struct {
	// Workers is how many passes are at work at once.
	Workers int
	// Waiting is how many passes may wait for an answer from outside besides; 0
	// for a kind that makes no such calls.
	Waiting int
	// Registry takes the metrics that tell which namespaces wait; none when nil.
	Registry prometheus.Registerer
	// SkipNameValidation lets a process set a controller up more than once.
	SkipNameValidation bool
}

// Complete adds the controller that b describes, with this reconciler, to the
// manager.
func (r *Reconciler[T]) Complete(mgr ctrl.Manager, b *builder.Builder, o ControllerOptions) error {
	if err := mgr.Add(r.monitors); err != nil {
		return fmt.Errorf("adding the monitors of %s: %w", r.traits.Name, err)
	}
	options := controller.Options{
		// Only Workers of them are at work, the others wait: see fairqueue.
		MaxConcurrentReconciles: o.Workers + o.Waiting,
		SkipNameValidation:      &o.SkipNameValidation,
		RateLimiter:             r.schedule,
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			queue := fairqueue.New(fairqueue.Options{
				Name: name, Workers: o.Workers, RateLimiter: limiter, Clock: clock.RealClock{}, Registerer: metrics.Registry,
			})
			if o.Registry != nil {
				o.Registry.MustRegister(queue)
			}
			r.queue = queue
			return queue
		},
	}
	if err := b.WithOptions(options).Complete(r); err != nil {
		return fmt.Errorf("setting up the controller of %s: %w", r.traits.Name, err)
	}
	return nil
}
