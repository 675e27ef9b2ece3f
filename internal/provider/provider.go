// Package provider is the port to what keeps buckets outside the cluster: the
// interface that each kind of provider implements in a folder of its own, the
// errors that they answer with, and the registry that opens one by its type.
// It knows nothing of Kubernetes.
package provider

import (
	"cmp"
	"context"

	"avalonhosting.example/bucketoperator/internal/egress"
)

// Client is one provider, reached with one configuration. Every call is
// bounded in time and in what it reads, returns an *Error when it fails, and
// may be repeated after a crash. It is safe for concurrent use.
type Client interface {
	// Create makes a bucket. The same key again answers with the same bucket,
	// from a provider that honours keys; see docs for one that does not.
	Create(ctx context.Context, key string, want Spec) (Bucket, error)

	// Get reads a bucket. ErrNotFound, and nothing else, means that there is none.
	Get(ctx context.Context, id string) (Bucket, error)

	// Resize changes a bucket's size. ErrUnsupported means that this provider cannot.
	// All that a provider must say is that it did so: every field of the answer but
	// the ID may be empty.
	Resize(ctx context.Context, id string, sizeGB int32) (Bucket, error)

	// Delete deletes a bucket. That it is already gone is success.
	Delete(ctx context.Context, id string) error

	// Probe is the cheapest call that shows that the provider answers and
	// takes the credentials. It changes nothing.
	Probe(ctx context.Context) error
}

// Spec is the bucket that is wanted.
type Spec struct {
	Region    string
	SizeGB    int32
	Encrypted bool
}

// Bucket is a bucket as the provider reports it.
type Bucket struct {
	// ID is the provider's name for the bucket. It has passed CheckID.
	ID string
	// Phase is where the bucket is in its life.
	Phase Phase
	// Region is empty when the provider does not report it.
	Region string
	// SizeGB is in gigabytes, 0 when the provider does not report it.
	SizeGB int32
	// Encrypted is nil when the provider does not report it.
	Encrypted *bool
	// Message is the provider's explanation of a Failed bucket, cleaned by CleanMessage. May be empty.
	Message string
}

// Phase is where a bucket is in its life at the provider.
type Phase string

const (
	// Provisioning means that the provider is still making the bucket.
	Provisioning Phase = "Provisioning"
	// Active means that the bucket can be used.
	Active Phase = "Active"
	// Failed means that the provider has given the bucket up.
	Failed Phase = "Failed"
)

// Config is what a Factory needs to reach a provider.
type Config struct {
	// Owner identifies the configuration in the process: all Clients with the
	// same Owner share one rate limit, one circuit breaker and one bound on
	// calls in flight. One without an Owner shares nothing.
	Owner egress.Destination
	// Namespace is whom the calls are made for: where the bucket is.
	Namespace string
	// Endpoint is the provider's URL.
	Endpoint string
	// Trusted is true for an endpoint that whoever runs the operator chose,
	// false for one that a tenant wrote: the latter must pass the guard.
	Trusted bool
	// Credentials are the data of the Secret, nil where none is named.
	Credentials map[string][]byte
	// Limits bound the calls of all Clients with this Owner.
	Limits egress.Limits
	// Names are what messages call the parts of the configuration.
	Names Names
}

// Names are what messages call the parts of a configuration, for readers who
// see the message elsewhere than on the configuration. Empty ones mean what
// they are called there.
type Names struct {
	// Endpoint is what Config.Endpoint is called; empty means spec.endpoint.
	Endpoint string
	// SecretRef is where the Secret is named; empty means spec.secretRef.
	SecretRef string
	// Secret is what Config.Credentials are called; empty means the Secret.
	Secret string
}

// OrDefault fills in the defaults.
func (n Names) OrDefault() Names {
	return Names{
		Endpoint:  cmp.Or(n.Endpoint, "spec.endpoint"),
		SecretRef: cmp.Or(n.SecretRef, "spec.secretRef"),
		Secret:    cmp.Or(n.Secret, "the Secret"),
	}
}

// Factory opens a Client. It makes no call; it fails with an *Error that names
// the field and the cure when the configuration cannot be right.
type Factory interface {
	Open(config Config) (Client, error)
	// Forget frees what is shared by all Clients of owner. A later Open starts afresh.
	Forget(owner egress.Destination)
}

// Registry holds a Factory for each type of provider. It is filled in one
// place, by hand, in package controllers.
type Registry map[string]Factory
