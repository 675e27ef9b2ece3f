// Package outside is how the kinds of this group reach what is not theirs: the
// provider behind a BucketProviderConfig, and the Secrets of users, which are
// watched as metadata only and read when they are used.
package outside

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/engine/reference"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// Access opens providers and reads users' Secrets.
type Access struct {
	// Live reads from the API server itself.
	Live client.Reader
	// Metadata reads the metadata of Secrets from a cache.
	Metadata client.Reader
	// Providers holds a factory for each type of provider.
	Providers provider.Registry
	// Configs reads BucketProviderConfigs from the API server itself, for many
	// passes at once.
	Configs *reference.SharedReader[*storagev1.BucketProviderConfig]
}

// NewConfigReader is what Access.Configs is.
func NewConfigReader(live client.Reader) *reference.SharedReader[*storagev1.BucketProviderConfig] {
	return &reference.SharedReader[*storagev1.BucketProviderConfig]{
		Live: live, New: func() *storagev1.BucketProviderConfig { return &storagev1.BucketProviderConfig{} }, Clock: clock.RealClock{},
	}
}

// Target is a provider as a bucket reaches it.
type Target struct {
	// Name is the BucketProviderConfig's; empty for the operator's default endpoint.
	Name string
	// Namespace is whom it serves: where the bucket is.
	Namespace string
	// Revision identifies the state of the configuration and its Secret.
	Revision string
	// Endpoint is the provider's URL.
	Endpoint string
	// Config is the configuration, nil for the operator's default endpoint.
	Config *storagev1.BucketProviderConfig
}

// Leaving tells whether the configuration is being deleted.
func (t Target) Leaving() bool { return t.Config != nil && !t.Config.DeletionTimestamp.IsZero() }

// Default is the operator's default endpoint, as it serves a namespace.
func Default(namespace, endpoint string) Target {
	return Target{Namespace: namespace, Endpoint: endpoint, Revision: Digest("default-endpoint", endpoint)}
}

// Configured is the provider of a BucketProviderConfig, whose Secret, where it
// names one, has the given metadata.
func Configured(config *storagev1.BucketProviderConfig, secret *metav1.PartialObjectMetadata) Target {
	parts := []string{string(config.UID), fmt.Sprint(config.Generation)}
	if secret != nil {
		parts = append(parts, string(secret.UID), secret.ResourceVersion)
	}
	return Target{
		Name: config.Name, Namespace: config.Namespace, Endpoint: config.Spec.Endpoint,
		Config: config, Revision: Digest(parts...),
	}
}

// Digest is a short hash of strings, of which none must be secret.
func Digest(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// SecretMetadata is the metadata of a Secret, from the cache; nil when there
// is no such Secret.
func (a Access) SecretMetadata(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	secret := NewSecretMetadata()
	err := a.Metadata.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of Secret %s: %w", key.Name, err)
	}
	return secret, nil
}

// NewSecretMetadata is empty metadata of a Secret.
func NewSecretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

// Open opens the provider, with what its Secret holds now. The error is a
// *provider.Error when the configuration or the Secret is at fault. Its messages
// are for a bucket: they say which configuration they tell of.
func (a Access) Open(ctx context.Context, target Target) (provider.Client, error) {
	return a.open(ctx, target, owner(target.Config), names(target.Config))
}

// Check tells whether Open would fail. It changes nothing of what those share
// that have opened the same provider. Its messages are for the configuration itself.
func (a Access) Check(ctx context.Context, target Target) error {
	own := provider.Names{}
	if target.Config != nil {
		own.Secret = "Secret " + target.Config.Spec.SecretRef.Name
	}
	_, err := a.open(ctx, target, egress.Destination{}, own)
	return err
}

func (a Access) open(ctx context.Context, target Target, owner egress.Destination, names provider.Names) (provider.Client, error) {
	config := provider.Config{Owner: owner, Namespace: target.Namespace, Endpoint: target.Endpoint, Trusted: true, Names: names}
	providerType := storagev1.ProviderTypeHTTP
	if c := target.Config; c != nil {
		providerType = c.Spec.Type
		config.Trusted = false
		config.Limits = egress.Limits{QPS: c.Spec.RateLimit.QPS, Burst: c.Spec.RateLimit.Burst}
		if name := c.Spec.SecretRef.Name; name != "" {
			data, err := a.secret(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name})
			if err != nil {
				return nil, err
			}
			config.Credentials = data
		}
	}
	factory, ok := a.Providers[string(providerType)]
	if !ok {
		return nil, &provider.Error{
			Class: provider.Terminal, Reason: storagev1.ReasonProviderTypeUnknown, Refused: true,
			Message: fmt.Sprintf("spec.type %q of BucketProviderConfig %s is not known to this operator", providerType, target.Name),
		}
	}
	return factory.Open(config)
}

// Forget frees what is kept in memory for a configuration that is gone.
func (a Access) Forget(name types.NamespacedName) {
	for _, factory := range a.Providers {
		factory.Forget(egress.Destination{Namespace: name.Namespace, Name: name.Name})
	}
}

// owner identifies a configuration in the process. It is its name, so that a
// configuration that is made anew goes on under the limits of the old one.
func owner(config *storagev1.BucketProviderConfig) egress.Destination {
	if config == nil {
		return egress.Destination{Name: "default-endpoint"}
	}
	return egress.Destination{Namespace: config.Namespace, Name: config.Name}
}

// names are what a bucket's messages call the parts of a configuration.
func names(config *storagev1.BucketProviderConfig) provider.Names {
	if config == nil {
		return provider.Names{
			Endpoint:  "the operator's --default-provider-endpoint",
			SecretRef: "spec.secretRef of a BucketProviderConfig called " + storagev1.DefaultBucketProviderConfigName,
		}
	}
	of := " of BucketProviderConfig " + config.Name
	return provider.Names{
		Endpoint:  "spec.endpoint" + of,
		SecretRef: "spec.secretRef" + of,
		Secret:    fmt.Sprintf("Secret %s (%s)", config.Spec.SecretRef.Name, of[1:]),
	}
}

// ErrSecretNotFound is returned when the Secret that a configuration names does not exist.
var ErrSecretNotFound = errors.New("secret not found")

func (a Access) secret(ctx context.Context, key types.NamespacedName) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := a.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, ErrSecretNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key.Name, child.Stable(err))
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	return secret.Data, nil
}

// SecretNotFound tells a person what is wrong when the Secret that a configuration names does not exist.
func SecretNotFound(config *storagev1.BucketProviderConfig) string {
	return fmt.Sprintf("there is no Secret %s, which spec.secretRef.name of BucketProviderConfig %s names: create it in this namespace",
		config.Spec.SecretRef.Name, config.Name)
}
