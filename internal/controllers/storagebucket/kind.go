// Package storagebucket is the kind StorageBucket: a bucket at a provider
// outside the cluster, the Secret that tells an application how to reach it,
// and the Service that is its address in the cluster.
package storagebucket

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// Kind reconciles StorageBuckets.
type Kind struct {
	// Client reads from the cache.
	Client client.Reader
	// Access opens providers.
	Access outside.Access
	// DefaultEndpoint serves buckets that name no provider in namespaces that
	// have no default one. Empty: no bucket.
	DefaultEndpoint string
	// MinPoll and MaxPoll bound the time between two looks at a bucket that
	// the provider is making, or deleting.
	MinPoll, MaxPoll time.Duration
	// Random gives numbers in [0,1) that spread polls.
	Random func() float64
}

// New is an empty StorageBucket.
func (k *Kind) New() *storagev1.StorageBucket { return &storagev1.StorageBucket{} }

// LogValues is the bucket's id at the provider, once it is known.
func (k *Kind) LogValues(bucket *storagev1.StorageBucket) []any {
	if bucket.Status.ID == "" {
		return nil
	}
	return []any{"bucketID", bucket.Status.ID}
}

// Steps make a bucket real.
func (k *Kind) Steps(pass *engine.Pass, bucket *storagev1.StorageBucket) []engine.Step {
	r := &run{Kind: k, pass: pass, bucket: bucket}
	return []engine.Step{
		{Condition: storagev1.ConditionProviderResolved, Independent: true, Do: step(r.resolve, storagev1.ReasonValid)},
		{Condition: storagev1.ConditionProvisioned, Independent: true, Do: step(r.provision, storagev1.ReasonActive)},
		{Condition: storagev1.ConditionCredentialsReady, Concurrent: true, Do: step(r.publishAccess, storagev1.ReasonWritten)},
		{Condition: storagev1.ConditionEndpointReady, Concurrent: true, Do: step(r.publishEndpoint, storagev1.ReasonWritten)},
	}
}

// Teardown deletes the bucket at the provider.
func (k *Kind) Teardown(pass *engine.Pass, bucket *storagev1.StorageBucket) []engine.Step {
	r := &run{Kind: k, pass: pass, bucket: bucket}
	return []engine.Step{{Condition: storagev1.ConditionBucketDeleted, Do: step(r.remove, storagev1.ReasonBucketDeleted)}}
}

// step is a step that is done, for the given reason, when do returns no error.
func step(do func(context.Context) error, reason string) func(context.Context) engine.Outcome {
	return func(ctx context.Context) engine.Outcome { return engine.From(do(ctx), engine.Done(reason)) }
}

// Summarize sets the phase. A bucket whose provider keeps it at another size is
// ready, and its message says so.
func (k *Kind) Summarize(bucket *storagev1.StorageBucket, summary *engine.Summary) {
	status := &bucket.Status
	switch {
	case summary.Deleting:
		status.Phase = storagev1.BucketPhaseDeleting
	case status.Phase == storagev1.BucketPhaseActive && status.ID != "":
		// The provider serves it, whatever else may be wrong.
	case summary.Stalled:
		status.Phase = storagev1.BucketPhaseFailed
	default:
		status.Phase = storagev1.BucketPhaseProvisioning
	}
	if summary.Status != metav1.ConditionTrue {
		return
	}
	summary.Message = fmt.Sprintf("bucket %s is active at %s", status.ID, status.Endpoint)
	if size := bucket.Spec.SizeGB; status.SizeGB != size && status.SizeGB != 0 {
		summary.Message += fmt.Sprintf("; it has %d GB, spec.sizeGB %d is not applied: see %s", status.SizeGB, size, storagev1.ConditionSizeApplied)
	}
}

// run is one pass over one bucket: what the steps have learned so far.
type run struct {
	*Kind
	pass   *engine.Pass
	bucket *storagev1.StorageBucket

	// target is the provider that serves the bucket; nil until resolve has found it.
	target *outside.Target
	// knownSizeGB is the bucket's size as it was last reported.
	knownSizeGB int32
}

func (r *run) name() types.NamespacedName { return client.ObjectKeyFromObject(r.bucket) }

// usable tells whether the provider serves the bucket, as far as is known.
func (r *run) usable() bool {
	return r.bucket.Status.ID != "" && r.bucket.Status.Phase == storagev1.BucketPhaseActive
}

// shortWait is how long a wait may be that is not worth a status write.
const shortWait = 2 * time.Second

// failed turns a provider's answer into what the engine is to do.
func (r *run) failed(err error) error {
	e := provider.AsError(err)
	reason := cmp.Or(e.Reason, string(e.Class))
	switch e.Class {
	case provider.Terminal:
		return engine.Terminal(reason, e)
	case provider.Throttled:
		switch {
		case e.After == 0:
			return engine.Failed(reason, e)
		case brief(e), ownLimit(e) && r.usable():
			return engine.Requeue(e.After)
		case ownLimit(e):
			return engine.InProgress(reason, "%s", e.Message).After(e.After)
		}
		return engine.Failed(reason, e).After(e.After)
	case provider.NotFound, provider.Unauthorized, provider.Unsupported, provider.Transient:
	}
	return engine.Failed(reason, e)
}

// brief tells whether a call was held back here, for a time too short to speak of.
func brief(e *provider.Error) bool { return ownLimit(e) && e.After <= shortWait }

// ownLimit tells whether the call was held back here and not by the provider.
func ownLimit(e *provider.Error) bool { return e.Class == provider.Throttled && e.Local }
