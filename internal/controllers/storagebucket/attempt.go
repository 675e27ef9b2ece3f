package storagebucket

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// attempt is what is known of the calls that were to create a bucket. It is
// read from the object alone, so that it survives any crash.
type attempt int

const (
	// attemptNone: no call was made under any key.
	attemptNone attempt = iota
	// attemptRefused: each call was refused, or held back here: there is no bucket.
	attemptRefused
	// attemptInDoubt: a call may have made a bucket that nobody lived to write down.
	attemptInDoubt
	// attemptMade: the id of the bucket is known.
	attemptMade
)

// attemptOf reads the attempt from the object. The finalizer and the key are
// written together and before the first call, so an object that is held but
// has lost its key is in doubt, too.
func attemptOf(bucket *storagev1.StorageBucket, held bool) attempt {
	switch {
	case bucket.Status.ID != "":
		return attemptMade
	case !held:
		return attemptNone
	case bucket.Status.CreateOutcome != "":
		return attemptRefused
	}
	return attemptInDoubt
}

// request is the body of a create call as it is kept on the object.
type request struct {
	SizeGB    int32 `json:"sizeGB"`
	Encrypted bool  `json:"encrypted"`
}

// want is the bucket that the spec wants.
func (r *run) want() provider.Spec {
	spec := &r.bucket.Spec
	return provider.Spec{Region: spec.Region, SizeGB: spec.SizeGB, Encrypted: spec.Encrypted != nil && *spec.Encrypted}
}

// asked is the bucket that the call in doubt asked for. The region cannot have
// changed; the rest is on the object.
func (r *run) asked() provider.Spec {
	want := r.want()
	var kept request
	if json.Unmarshal([]byte(r.bucket.Annotations[storagev1.RequestAnnotation]), &kept) == nil && kept.SizeGB > 0 {
		want.SizeGB, want.Encrypted = kept.SizeGB, kept.Encrypted
	}
	return want
}

// presentKey is the key on the object or, where there is none, the one to put
// there. One that does not belong to the object counts as none where that can
// only mend: once the bucket is made, and for its deletion. Before, it is for
// the user to say what it was meant for.
func (r *run) presentKey() string {
	key := r.bucket.Annotations[storagev1.IdempotencyKeyAnnotation]
	mend := r.bucket.Status.ID != "" || !r.bucket.DeletionTimestamp.IsZero() && !r.keyWasRefused()
	if key != "" && (!mend || keyBelongsTo(r.name(), key)) {
		return key
	}
	return newKey(r.name(), r.bucket.UID, r.bucket.Status.ID)
}

// keyWasRefused tells whether no call was made as the key was another object's.
func (r *run) keyWasRefused() bool {
	c := meta.FindStatusCondition(r.bucket.Status.Conditions, storagev1.ConditionProvisioned)
	return c != nil && c.Reason == storagev1.ReasonKeyInvalid
}

// marks are the annotations that a bucket carries: its key, the configuration
// that the key is meant for, and what the call under it asks for.
func marks(key, config string, asked provider.Spec) map[string]string {
	body, _ := json.Marshal(request{SizeGB: asked.SizeGB, Encrypted: asked.Encrypted}) // cannot fail
	return map[string]string{
		storagev1.IdempotencyKeyAnnotation: key,
		storagev1.ProviderAnnotation:       config,
		storagev1.RequestAnnotation:        string(body),
	}
}

// mayBeAtWork tells whether a repeated create call was answered with a conflict
// as the provider may still be at work on the first, which is what the IETF's
// draft of the Idempotency-Key header asks for. It has been so for the given
// time; a provider that goes on like that means a refusal.
func (r *run) mayBeAtWork(err error, since time.Duration) bool {
	return err != nil && provider.AsError(err).Conflict && since < r.patience()
}

// askAgain says that the call is to be repeated.
func (r *run) askAgain(since time.Duration, err error) error {
	return engine.InProgress(storagev1.ReasonCreateInProgress,
		"the provider may still be at work on the first create call: %s", provider.AsError(err).Message).After(r.pollDelay(since))
}

// confirmTarget asks the API server itself whether the provider is still the
// one that the cache told of: a bucket is bound to where it is created.
func (r *run) confirmTarget(ctx context.Context) error {
	name := r.target.Name
	if name == "" {
		name = storagev1.DefaultBucketProviderConfigName
	}
	live, err := r.Access.Configs.Get(ctx, types.NamespacedName{Namespace: r.bucket.Namespace, Name: name}, r.pass.Began())
	switch {
	case apierrors.IsNotFound(err) && r.target.Config == nil:
		return nil
	case apierrors.IsNotFound(err):
		return engine.ErrStale
	case err != nil:
		return fmt.Errorf("reading BucketProviderConfig %s: %w", name, child.Stable(err))
	case r.target.Config == nil && r.bucket.Spec.ProviderRef == "", !sameConfig(live, r.target):
		return engine.ErrStale
	}
	return nil
}

func sameConfig(live *storagev1.BucketProviderConfig, target *outside.Target) bool {
	return target.Config != nil && live.UID == target.Config.UID && live.Generation == target.Config.Generation &&
		live.DeletionTimestamp.IsZero()
}
