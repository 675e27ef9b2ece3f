package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/operator"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

// newManager sets up all that runs. A standby's controllers warm up: their
// caches and queues are filled when it takes over.
func newManager(ctx context.Context, config *rest.Config, o options) (ctrl.Manager, error) {
	if err := metrics.Registry.Register(leftOut); err != nil {
		return nil, err
	}
	lease, err := o.leader.lease(config)
	if err != nil {
		return nil, err
	}
	// The lease's own client is not fenced: it is what renews.
	config = rest.CopyConfig(config)
	config.Wrap(lease.fence)
	managerOptions := ctrl.Options{
		Scheme:                  controllers.NewScheme(),
		Cache:                   controllers.CacheOptions(o.namespaces),
		Metrics:                 o.metrics.server(),
		HealthProbeBindAddress:  o.probes,
		GracefulShutdownTimeout: &o.shutdown,
		Controller:              controllerconfig.Controller{EnableWarmup: new(true)},
		LeaderElection:          o.leader.elect,
		LeaderElectionID:        leaseName,
		LeaseDuration:           &o.leader.leaseDuration,
		RenewDeadline:           &o.leader.renewDeadline,
		RetryPeriod:             &o.leader.retryPeriod,
		// Safe, as the process ends once the manager has: see run.
		LeaderElectionReleaseOnCancel: true,
	}
	if lease != nil {
		managerOptions.LeaderElectionResourceLockInterface = lease
	}
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return nil, err
	}
	outside, err := newEgress(o, lease)
	if err != nil {
		return nil, err
	}
	providers, err := newProviders(outside)
	if err != nil {
		return nil, err
	}
	fill, err := operator.SetUp(ctx, mgr, controllers.Definitions, o.namespaces, controllers.Options{
		Groups:                  o.controllers,
		Egress:                  outside,
		Providers:               providers,
		DefaultEndpoint:         o.defaultEndpoint,
		MaxConcurrentReconciles: o.maxConcurrent,
		Resync:                  o.resyncInterval,
		Registry:                metrics.Registry,
	})
	if err != nil {
		return nil, err
	}
	if err := addRevision(mgr, lease, o); err != nil {
		return nil, err
	}
	return mgr, addChecks(ctx, mgr, lease, fill)
}

// addRevision ends the manager should the cluster's data go back in time: the
// lease tells, or without one, a look now and then.
func addRevision(mgr ctrl.Manager, lease *lease, o options) error {
	var watch manager.Runnable
	if lease != nil {
		watch = lease.revision
	} else {
		first := operator.Named(controllers.Definitions, o.controllers)[0]
		namespace := ""
		if len(o.namespaces) > 0 {
			namespace = o.namespaces[0]
		}
		watch = &revisionWatch{
			revision: newRevision(), live: mgr.GetAPIReader(), clock: clock.RealClock{},
			kind: first.GroupVersion.WithKind(first.KindNames()[0]), namespace: namespace,
		}
	}
	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("adding the watch of the revision: %w", err)
	}
	return nil
}

// newEgress is how all kinds call the outside.
func newEgress(o options, lease *lease) (egress.Settings, error) {
	settings := egress.Settings{AllowLoopback: o.allowLoopback, Pool: egress.NewPool(0), Fence: lease.mayAct}.WithDefaults()
	if err := metrics.Registry.Register(egress.NewCollector(settings.Pool)); err != nil {
		return settings, fmt.Errorf("registering the metrics of calls to the outside: %w", err)
	}
	return settings, nil
}

// newProviders holds one line for each type of provider.
func newProviders(outside egress.Settings) (provider.Registry, error) {
	calls, err := provider.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, err
	}
	http := string(storagev1.ProviderTypeHTTP)
	return provider.Registry{
		http: &httpapi.Factory{Egress: outside, Observe: calls.Observer(http)},
	}, nil
}

// addChecks adds /healthz and /readyz, and gives the lease its recorder.
func addChecks(ctx context.Context, mgr ctrl.Manager, lease *lease, fill func(context.Context) error) error {
	if lease != nil {
		lease.events.EventRecorder = mgr.GetEventRecorderFor(leaseName) //nolint:staticcheck // leader election knows the old API only
		if err := mgr.AddHealthzCheck("lease", lease.check); err != nil {
			return fmt.Errorf("adding the health check: %w", err)
		}
	} else if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the health check: %w", err)
	}
	ready := &readiness{fill: fill, stopping: ctx.Done()}
	if err := mgr.Add(ready); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", ready.check); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return nil
}
