package storagebucket

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
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

// SetUp adds the controller to the manager. metadata is a cache of the
// metadata of all Secrets and Services.
func SetUp(mgr ctrl.Manager, kind *Kind, metadata cache.Cache, engineOptions engine.Options, options engine.ControllerOptions) error {
	watched := func() builder.Predicates { return builder.WithPredicates(child.Harmed()) }
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("storagebucket").
		For(&storagev1.StorageBucket{}, builder.WithPredicates(engine.Changed(Traits))).
		Owns(&corev1.Secret{}, watched()).
		Owns(&corev1.Service{}, watched()).
		Owns(&discoveryv1.EndpointSlice{}, watched()).
		Watches(&storagev1.BucketProviderConfig{}, handler.EnqueueRequestsFromMapFunc(kind.usersOfConfig), builder.WithPredicates(configChanged())).
		Watches(&storagev1.BucketProviderConfig{}, handler.EnqueueRequestsFromMapFunc(kind.unserved), builder.WithPredicates(choiceChanged())).
		WatchesRawSource(source.Kind(metadata, outside.NewSecretMetadata(),
			handler.TypedEnqueueRequestsFromMapFunc(kind.usersOfSecret), secretChanged())).
		WatchesRawSource(source.Kind(metadata, outside.NewSecretMetadata(),
			handler.TypedEnqueueRequestsFromMapFunc(kind.bucketOfSecret), nameFreed())).
		WatchesRawSource(source.Kind(metadata, outside.NewServiceMetadata(),
			handler.TypedEnqueueRequestsFromMapFunc(kind.bucketOfService), nameFreed()))
	return NewReconciler(kind, engineOptions).Complete(mgr, controller, options)
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
func (k *Kind) usersOfSecret(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	configs, err := index.ConfigsOf(ctx, k.Client, secret.Namespace, secret.Name)
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
func (k *Kind) bucketOfSecret(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	name, ok := strings.CutSuffix(secret.Name, accessSecretSuffix)
	if !ok {
		return nil
	}
	return k.bucketNamed(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: name})
}

// bucketOfService is the bucket whose own Service has, or could have, this name.
func (k *Kind) bucketOfService(ctx context.Context, service *metav1.PartialObjectMetadata) []reconcile.Request {
	return k.bucketNamed(ctx, types.NamespacedName{Namespace: service.Namespace, Name: service.Name})
}

func (k *Kind) bucketNamed(ctx context.Context, name types.NamespacedName) []reconcile.Request {
	if err := k.Client.Get(ctx, name, &storagev1.StorageBucket{}); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
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
func secretChanged() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
			return e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion
		},
	}
}

// nameFreed lets through that an object is gone or has another owner, so that
// its name may be free for a bucket's own object.
func nameFreed() predicate.TypedPredicate[*metav1.PartialObjectMetadata] {
	return predicate.TypedFuncs[*metav1.PartialObjectMetadata]{
		CreateFunc: func(event.TypedCreateEvent[*metav1.PartialObjectMetadata]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*metav1.PartialObjectMetadata]) bool {
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
