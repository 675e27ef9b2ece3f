package bucketproviderconfig

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// +kubebuilder:rbac:groups=storage.avalonhosting.example,resources=bucketproviderconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.avalonhosting.example,resources=bucketproviderconfigs/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;patch

// Traits are how the engine handles BucketProviderConfigs.
var Traits = engine.Traits{Name: "BucketProviderConfig", Finalizer: storagev1.ConfigFinalizer}

// NewReconciler is the reconciler of BucketProviderConfigs.
func NewReconciler(kind *Kind, options engine.Options) *engine.Reconciler[*storagev1.BucketProviderConfig] {
	return engine.NewReconciler(kind, Traits, options)
}

// SetUp adds the controller to the manager.
func SetUp(s *operator.Setup, kind *Kind) error {
	secrets, err := s.WatchMetadata(outside.NewSecretMetadata(), kind.configsOfSecret)
	if err != nil {
		return fmt.Errorf("watching Secrets: %w", err)
	}
	controller := ctrl.NewControllerManagedBy(s.Manager).
		Named("bucketproviderconfig").
		For(&storagev1.BucketProviderConfig{}, builder.WithPredicates(engine.Changed(Traits))).
		Watches(&storagev1.StorageBucket{}, handler.EnqueueRequestsFromMapFunc(configsOfBucket), builder.WithPredicates(freed())).
		WatchesRawSource(secrets)
	return NewReconciler(kind, s.Engine).Complete(s.Manager, controller, s.Controller())
}

// configsOfBucket are the configurations that a bucket used.
func configsOfBucket(_ context.Context, bucket client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range index.ConfigsServing(bucket.(*storagev1.StorageBucket)) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: bucket.GetNamespace(), Name: name}})
	}
	return requests
}

// configsOfSecret are the configurations that name a Secret. One that is kept
// and that none names gets a pass over a configuration of its own name, which
// finds that it is to be released.
func (k *Kind) configsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	configs, err := index.ConfigsOf(ctx, k.Client, secret.GetNamespace(), secret.GetName())
	if err != nil {
		logf.FromContext(ctx).Error(err, "Passing on a change of a Secret")
	}
	if len(configs) == 0 && controllerutil.ContainsFinalizer(secret, storagev1.ConfigFinalizer) {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(secret)}}
	}
	var requests []reconcile.Request
	for _, config := range configs {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&config)})
	}
	return requests
}

// freed lets through that a bucket is gone, or is served by another
// configuration: that frees what it used.
func freed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(index.ConfigsServing(e.ObjectOld.(*storagev1.StorageBucket)), index.ConfigsServing(e.ObjectNew.(*storagev1.StorageBucket)))
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
