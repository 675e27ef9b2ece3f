package storagebucket

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// resolve finds the provider that serves the bucket.
func (r *run) resolve(ctx context.Context) error {
	name, bound, err := r.binding()
	if err != nil {
		return err
	}
	target, err := r.find(ctx, name, bound)
	if err != nil {
		return err
	}
	if config := target.Config; config != nil {
		if !bound && !config.DeletionTimestamp.IsZero() {
			return engine.Blocked(storagev1.ReasonProviderDeleting, "BucketProviderConfig %s is being deleted", name)
		}
		if config.Spec.ResyncInterval != nil {
			r.pass.ResyncEvery(config.Spec.ResyncInterval.Duration)
		}
	}
	r.target = target
	return nil
}

// binding is the name of the configuration that serves the bucket, and whether
// the bucket is bound to it. A bucket that exists, or may exist, stays with the
// configuration that made it.
func (r *run) binding() (name string, bound bool, err error) {
	wanted, status := r.bucket.Spec.ProviderRef, &r.bucket.Status
	if status.ID != "" {
		return status.Provider.Name, true, nil
	}
	marked, held := r.bucket.Annotations[storagev1.ProviderAnnotation]
	held = held && r.pass.HasFinalizer()
	switch {
	case held && status.CreateOutcome == "" && wanted != "" && wanted != marked && r.bucket.DeletionTimestamp.IsZero():
		if marked == "" {
			marked = "the operator's default endpoint"
		}
		return "", true, engine.Terminal(storagev1.ReasonProviderChanged, fmt.Errorf(
			"spec.providerRef was changed to %s while the bucket may already exist at %s: set it back, or delete this object", wanted, marked))
	case held && status.CreateOutcome == "":
		return marked, true, nil
	case wanted != "":
		return wanted, false, nil
	}
	return storagev1.DefaultBucketProviderConfigName, false, nil
}

// find is the provider behind a configuration's name. An unbound bucket that
// names none falls back to the operator's default endpoint.
func (r *run) find(ctx context.Context, name string, bound bool) (*outside.Target, error) {
	if name == "" {
		return r.defaultTarget(ctx, bound)
	}
	config := &storagev1.BucketProviderConfig{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: r.bucket.Namespace, Name: name}, config)
	switch {
	case apierrors.IsNotFound(err) && !bound && r.bucket.Spec.ProviderRef == "":
		return r.defaultTarget(ctx, bound)
	case apierrors.IsNotFound(err) && !bound:
		return nil, engine.Blocked(storagev1.ReasonProviderNotFound,
			"there is no BucketProviderConfig %s in this namespace, which serves this bucket: create it, or correct spec.providerRef", name)
	case apierrors.IsNotFound(err): // the bucket is, or may be, with that one
		return nil, engine.Blocked(storagev1.ReasonProviderNotFound,
			"there is no BucketProviderConfig %s in this namespace, which serves this bucket: create it", name)
	case err != nil:
		return nil, fmt.Errorf("reading BucketProviderConfig %s: %w", name, err)
	case !controllerutil.ContainsFinalizer(config, storagev1.ConfigFinalizer) && config.DeletionTimestamp.IsZero():
		return nil, engine.InProgress(storagev1.ReasonProviderNotReady, "BucketProviderConfig %s was not looked at yet", name)
	}
	secretName := config.Spec.SecretRef.Name
	if secretName == "" {
		target := outside.Configured(config, nil)
		return &target, nil
	}
	secret, err := r.Access.SecretMetadata(ctx, types.NamespacedName{Namespace: r.bucket.Namespace, Name: secretName})
	switch {
	case err != nil:
		return nil, err
	case secret == nil:
		return nil, engine.Blocked(storagev1.ReasonSecretNotFound, "%s", outside.SecretNotFound(config))
	case !controllerutil.ContainsFinalizer(secret, storagev1.ConfigFinalizer) && secret.DeletionTimestamp.IsZero():
		return nil, engine.InProgress(storagev1.ReasonProviderNotReady, "Secret %s of BucketProviderConfig %s was not looked at yet", secretName, name)
	}
	target := outside.Configured(config, secret)
	return &target, nil
}

func (r *run) defaultTarget(ctx context.Context, bound bool) (*outside.Target, error) {
	switch {
	case r.DefaultEndpoint == "" && bound:
		return nil, engine.Blocked(storagev1.ReasonProviderNotFound,
			"the operator's default endpoint serves this bucket, and it has none any more: start the operator with --default-provider-endpoint")
	case r.DefaultEndpoint == "":
		configs, err := index.UsableConfigs(ctx, r.Client, r.bucket.Namespace)
		if err != nil {
			return nil, err
		}
		return nil, engine.Blocked(storagev1.ReasonProviderNotFound,
			"spec.providerRef names no BucketProviderConfig, there is none called %[1]s in this namespace, and the operator has no default endpoint: "+
				"create a BucketProviderConfig called %[1]s, %[2]s", storagev1.DefaultBucketProviderConfigName, orName(configs))
	}
	target := outside.Default(r.bucket.Namespace, r.DefaultEndpoint)
	return &target, nil
}

// orName tells what else there is to do where no configuration serves a bucket.
func orName(configs []string) string {
	if len(configs) == 0 {
		return "which the administrator of the namespace may"
	}
	return "or set spec.providerRef to one of: " + provider.List(configs)
}
