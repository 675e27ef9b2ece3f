// Package bucketproviderconfig is the kind BucketProviderConfig: how a provider
// is reached. It keeps the object, and the Secret that it names, for as long
// as buckets use them.
package bucketproviderconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// Kind reconciles BucketProviderConfigs.
type Kind struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Access opens providers and reads Secrets.
	Access outside.Access
}

// New is an empty BucketProviderConfig.
func (k *Kind) New() *storagev1.BucketProviderConfig { return &storagev1.BucketProviderConfig{} }

// Steps check a configuration and keep its Secret.
func (k *Kind) Steps(pass *engine.Pass, config *storagev1.BucketProviderConfig) []engine.Step {
	r := &run{Kind: k, pass: pass, config: config}
	return []engine.Step{
		{Condition: storagev1.ConditionEndpointAllowed, Independent: true, Do: step(r.endpointAllowed)},
		{Condition: storagev1.ConditionSecretReady, Do: step(r.secretReady)},
	}
}

// Teardown waits until no bucket uses the configuration, then lets its Secret go.
func (k *Kind) Teardown(pass *engine.Pass, config *storagev1.BucketProviderConfig) []engine.Step {
	r := &run{Kind: k, pass: pass, config: config}
	return []engine.Step{
		{Do: step(r.unused)},
		{Do: step(r.releaseOwnSecret)},
		{Do: step(r.releaseSecrets)},
	}
}

// step is a step that is done when do returns no error.
func step(do func(context.Context) error) func(context.Context) engine.Outcome {
	return func(ctx context.Context) engine.Outcome {
		return engine.From(do(ctx), engine.Done(storagev1.ReasonValid))
	}
}

// Gone frees what was kept for a configuration that is no more: what is known
// of its provider, and Secrets that none names any more, should somebody have
// taken its finalizer off by hand.
func (k *Kind) Gone(ctx context.Context, name types.NamespacedName) error {
	k.Access.Forget(name)
	r := &run{Kind: k, pass: &engine.Pass{}, config: &storagev1.BucketProviderConfig{}}
	r.config.Namespace, r.config.Name = name.Namespace, name.Name
	return r.releaseSecrets(ctx)
}

// Summarize gives the message of a ready object.
func (k *Kind) Summarize(config *storagev1.BucketProviderConfig, summary *engine.Summary) {
	if summary.Status == metav1.ConditionTrue {
		summary.Message = fmt.Sprintf("buckets can be created at %s", config.Spec.Endpoint)
	}
}

// run is one pass over one configuration.
type run struct {
	*Kind
	pass   *engine.Pass
	config *storagev1.BucketProviderConfig

	// endpointOK is true once the endpoint was found fit for use.
	endpointOK bool
}

// endpointAllowed checks the endpoint as far as that can be done without a call.
func (r *run) endpointAllowed(ctx context.Context) error {
	if _, err := r.pass.EnsureFinalizer(ctx, nil); err != nil {
		return err
	}
	bare := r.config.DeepCopy()
	bare.Spec.SecretRef = storagev1.SecretReference{}
	err := r.Access.Check(ctx, outside.Configured(bare, nil))
	r.endpointOK = err == nil
	return invalid(err)
}

// secretReady keeps the Secret and checks what is in it.
func (r *run) secretReady(ctx context.Context) error {
	if err := r.releaseSecrets(ctx); err != nil {
		return err
	}
	if err := r.keepSecret(ctx); err != nil {
		return err
	}
	switch {
	case r.config.Spec.SecretRef.Name == "":
		return nil
	case !r.endpointOK:
		return engine.Skipped() // what the Secret must hold cannot be said
	}
	err := r.Access.Check(ctx, outside.Configured(r.config, nil))
	if errors.Is(err, outside.ErrSecretNotFound) {
		return engine.Blocked(storagev1.ReasonSecretNotFound, "%s", outside.SecretNotFound(r.config))
	}
	return invalid(err)
}

func invalid(err error) error {
	if bad, ok := errors.AsType[*provider.Error](err); ok {
		return engine.Terminal(bad.Reason, bad)
	}
	return err
}

// maxNamed is how many buckets a message names.
const maxNamed = 5

// unused waits until no bucket uses the configuration. What the cache says is
// confirmed with the API server before anything is let go.
func (r *run) unused(ctx context.Context) error {
	users, err := index.BucketsOf(ctx, r.Client, r.config.Namespace, r.config.Name, maxNamed+1)
	if err != nil {
		return err
	}
	if len(users) == 0 {
		if users, err = r.liveUsers(ctx); err != nil {
			return err
		}
	}
	if len(users) == 0 {
		return nil
	}
	return engine.Blocked(storagev1.ReasonInUse, "%s", inUse(users))
}

// liveUsers asks the API server for buckets that use the configuration.
func (r *run) liveUsers(ctx context.Context) ([]storagev1.StorageBucket, error) {
	var users []storagev1.StorageBucket
	list := &storagev1.StorageBucketList{}
	for {
		err := r.Access.Live.List(ctx, list, client.InNamespace(r.config.Namespace), client.Limit(500), client.Continue(list.Continue))
		if err != nil {
			return nil, fmt.Errorf("listing the namespace's StorageBuckets: %w", err)
		}
		for i := range list.Items {
			if slices.Contains(index.ConfigsServing(&list.Items[i]), r.config.Name) {
				users = append(users, list.Items[i])
			}
		}
		if list.Continue == "" || len(users) > maxNamed {
			return users, nil
		}
	}
}

// inUse names some of the buckets that use a configuration, in stable order.
func inUse(users []storagev1.StorageBucket) string {
	names := make([]string, 0, len(users))
	for i := range users {
		names = append(names, users[i].Name)
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxNamed {
		names, more = names[:maxNamed], " and others"
	}
	return fmt.Sprintf("StorageBuckets use it: %s%s; it is kept until they are gone", strings.Join(names, ", "), more)
}
