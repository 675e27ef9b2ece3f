package storagebucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// +kubebuilder:rbac:groups=storage.avalonhosting.example,resources=storagebuckets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.avalonhosting.example,resources=storagebuckets/status,verbs=patch
// +kubebuilder:rbac:groups=storage.avalonhosting.example,resources=bucketproviderconfigs,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets;services,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Traits are how the engine handles StorageBuckets.
var Traits = engine.Traits{
	Name: "StorageBucket", Finalizer: storagev1.BucketFinalizer,
	Annotations: []string{storagev1.IdempotencyKeyAnnotation, storagev1.RequestAnnotation, storagev1.ProviderAnnotation},
}

// NewReconciler is the reconciler of StorageBuckets.
func NewReconciler(kind *Kind, options engine.Options) *engine.Reconciler[*storagev1.StorageBucket] {
	return engine.NewReconciler(kind, Traits, options)
}

// SetUp adds the controller to the manager.
func SetUp(s *operator.Setup, kind *Kind) error {
	users, usersErr := s.WatchMetadata(outside.NewSecretMetadata(), kind.usersOfSecret, secretChanged())
	freed, freedErr := s.WatchMetadata(outside.NewSecretMetadata(), kind.bucketOfSecret, nameFreed())
	if err := errors.Join(usersErr, freedErr); err != nil {
		return fmt.Errorf("watching Secrets: %w", err)
	}
	watched := func() builder.Predicates { return builder.WithPredicates(child.Harmed()) }
	controller := ctrl.NewControllerManagedBy(s.Manager).
		Named("storagebucket").
		For(&storagev1.StorageBucket{}, builder.WithPredicates(engine.Changed(Traits))).
		Owns(&corev1.Secret{}, watched()).
		Owns(&corev1.Service{}, watched()).
		Owns(&discoveryv1.EndpointSlice{}, watched()).
		Watches(&storagev1.BucketProviderConfig{}, handler.EnqueueRequestsFromMapFunc(kind.usersOfConfig), builder.WithPredicates(configChanged())).
		Watches(&storagev1.BucketProviderConfig{}, handler.EnqueueRequestsFromMapFunc(kind.unserved), builder.WithPredicates(choiceChanged())).
		WatchesRawSource(users).
		WatchesRawSource(freed)
	return NewReconciler(kind, s.Engine).Complete(s.Manager, controller, s.CallingController())
}

// usersOfConfig are the buckets that a configuration serves.
func (k *Kind) usersOfConfig(ctx context.Context, config client.Object) []reconcile.Request {
	buckets, err := index.BucketsOf(ctx, k.Client, config.GetNamespace(), config.GetName(), 0)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Passing on a change of a configuration")
	}
	return index.Requests(buckets)
}

// unserved are the buckets of a configuration's namespace that nothing serves:
// they tell which configurations there are to choose from.
func (k *Kind) unserved(ctx context.Context, config client.Object) []reconcile.Request {
	if k.DefaultEndpoint != "" {
		return nil
	}
	served := types.NamespacedName{Namespace: config.GetNamespace(), Name: storagev1.DefaultBucketProviderConfigName}
	if err := k.Client.Get(ctx, served, &storagev1.BucketProviderConfig{}); !apierrors.IsNotFound(err) {
		return nil
	}
	buckets, err := index.BucketsOf(ctx, k.Client, served.Namespace, served.Name, 0)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Passing on which configurations there are")
	}
	return index.Requests(slices.DeleteFunc(buckets, func(b storagev1.StorageBucket) bool {
		return b.Status.ID != "" || b.Spec.ProviderRef != ""
	}))
}

// usersOfSecret are the buckets of the configurations that name a Secret.
func (k *Kind) usersOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	configs, err := index.ConfigsOf(ctx, k.Client, secret.GetNamespace(), secret.GetName())
	if err != nil {
		logf.FromContext(ctx).Error(err, "Passing on a change of a Secret")
	}
	var requests []reconcile.Request
	for _, config := range configs {
		requests = append(requests, k.usersOfConfig(ctx, &config)...)
	}
	return requests
}

// bucketOfSecret is the bucket whose own Secret has, or could have, this name.
func (k *Kind) bucketOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	name, ok := strings.CutSuffix(secret.GetName(), accessSecretSuffix)
	if !ok {
		return nil
	}
	bucket := types.NamespacedName{Namespace: secret.GetNamespace(), Name: name}
	if err := k.Client.Get(ctx, bucket, &storagev1.StorageBucket{}); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: bucket}}
}

// configChanged lets through what changes how a configuration's buckets are
// served: its spec, and that it was looked at or is going.
func configChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			controllerutil.ContainsFinalizer(e.ObjectOld, storagev1.ConfigFinalizer) !=
				controllerutil.ContainsFinalizer(e.ObjectNew, storagev1.ConfigFinalizer)
	}}
}

// choiceChanged lets through that there is a configuration more, or one less,
// that takes new buckets.
func choiceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// secretChanged lets through every change of a Secret: its metadata does not
// tell what kind of change it was.
func secretChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
	}}
}

// nameFreed lets through that an object is gone or has another owner, so that
// its name may be free for a bucket's own object.
func nameFreed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := metav1.GetControllerOf(e.ObjectOld), metav1.GetControllerOf(e.ObjectNew)
			switch {
			case before == nil || after == nil:
				return before != after
			default:
				return before.UID != after.UID
			}
		},
	}
}
