package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BucketFinalizer keeps a StorageBucket until its bucket at the provider is gone.
const BucketFinalizer = GroupName + "/bucket-cleanup"

// ConfigFinalizer keeps a BucketProviderConfig, and the Secret that it names,
// until no StorageBucket uses it any more.
const ConfigFinalizer = GroupName + "/in-use"

const (
	// IdempotencyKeyAnnotation holds the key that the bucket was, or is about
	// to be, created with. It is kept on the object, so that it survives a
	// backup and restore into a new cluster.
	IdempotencyKeyAnnotation = GroupName + "/idempotency-key"

	// RequestAnnotation holds what the create call under the key asks for, as
	// JSON: should the call have to be repeated it must be the same call.
	RequestAnnotation = GroupName + "/create-request"

	// ProviderAnnotation holds which provider configuration the key is meant
	// for: the BucketProviderConfig's name, or nothing for the operator's
	// default endpoint.
	ProviderAnnotation = GroupName + "/provider"
)

// Conditions of a StorageBucket, besides Ready, Reconciling, Stalled and
// DeletionBlocked. Ready is the summary of ProviderResolved, Provisioned,
// CredentialsReady and EndpointReady.
const (
	// ConditionProviderResolved is True when the provider configuration, and
	// the Secret that it names, are there and usable. Reasons when not:
	// ProviderNotFound, ProviderNotReady, ProviderDeleting, ProviderChanged,
	// SecretNotFound.
	ConditionProviderResolved = "ProviderResolved"

	// ConditionProvisioned is True when the provider serves the bucket as the
	// spec wants it, as far as the provider can. Unknown with reason
	// Provisioning while the provider is at work. Reasons when False: those of
	// the provider's answer, such as SpecRefused, Unauthorized,
	// ProviderUnavailable, CertificateInvalid, MalformedResponse, RateLimited;
	// BucketFailed; ResizeRefused.
	ConditionProvisioned = "Provisioned"

	// ConditionBucketDeleted is present while the StorageBucket is being deleted:
	// True when the bucket is gone at the provider, or was let go of, False or
	// Unknown, with the reason, while it is not.
	ConditionBucketDeleted = "BucketDeleted"

	// ConditionCredentialsReady is True when the Secret <name>-access is as it
	// should be. Reason when not: SecretConflict.
	ConditionCredentialsReady = "CredentialsReady"

	// ConditionEndpointReady is True when the Service <name> is as it should
	// be. Reason when not: ServiceConflict.
	ConditionEndpointReady = "EndpointReady"

	// ConditionSizeApplied tells whether the bucket has the size of the spec.
	// Unknown when the provider does not report it. It does not count for
	// Ready: a provider may be unable to resize.
	ConditionSizeApplied = "SizeApplied"

	// ConditionEncryptionApplied tells whether the bucket is encrypted as the
	// spec wants it. Unknown when the provider does not report it. It does not
	// count for Ready: a provider may be unable to encrypt.
	ConditionEncryptionApplied = "EncryptionApplied"

	// ConditionEndpointReachable is False when pods cannot reach the endpoint
	// through the Service. It does not count for Ready.
	ConditionEndpointReachable = "EndpointReachable"
)

// Conditions of a BucketProviderConfig, besides Ready, Reconciling, Stalled
// and DeletionBlocked. Ready is the summary of the first two.
const (
	// ConditionEndpointAllowed is True when the endpoint is a URL that tenants
	// may use. Reason when not: EndpointRefused.
	ConditionEndpointAllowed = "EndpointAllowed"

	// ConditionSecretReady is True when the Secret is there and holds what the
	// provider's type needs, or none is named. Reasons when not:
	// SecretNotFound, SecretInvalid.
	ConditionSecretReady = "SecretReady"

	// ConditionSecretKept is present, and True, while the Secret is being
	// deleted but kept for the buckets that use it.
	ConditionSecretKept = "SecretKept"
)

// Reasons that conditions of both kinds share, besides those of api/meta/v1. A
// provider's own are listed in docs/storagebucket.md.
const (
	// ReasonProviderNotFound: there is no such BucketProviderConfig, nor a default.
	ReasonProviderNotFound = "ProviderNotFound"
	// ReasonProviderNotReady: the BucketProviderConfig was not looked at yet.
	ReasonProviderNotReady = "ProviderNotReady"
	// ReasonProviderDeleting: the BucketProviderConfig is being deleted.
	ReasonProviderDeleting = "ProviderDeleting"
	// ReasonProviderChanged: providerRef was changed while a bucket may exist at the former provider.
	ReasonProviderChanged = "ProviderChanged"
	// ReasonProviderTypeUnknown: this operator has no provider of that type.
	ReasonProviderTypeUnknown = "ProviderTypeUnknown"
	// ReasonSecretNotFound: the Secret that secretRef names does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretConflict: somebody else's Secret has the name.
	ReasonSecretConflict = "SecretConflict"
	// ReasonServiceConflict: somebody else's Service or EndpointSlice has the name.
	ReasonServiceConflict = "ServiceConflict"
	// ReasonKeyInvalid: the idempotency-key annotation was made for another object.
	ReasonKeyInvalid = "IdempotencyKeyInvalid"
	// ReasonProvisioning: the provider is making the bucket.
	ReasonProvisioning = "Provisioning"
	// ReasonCreateInProgress: the provider may still be at work on the first of several create calls.
	ReasonCreateInProgress = "CreateInProgress"
	// ReasonActive: the provider serves the bucket.
	ReasonActive = "Active"
	// ReasonBucketFailed: the provider has given the bucket up.
	ReasonBucketFailed = "BucketFailed"
	// ReasonBucketMissing: the provider does not know the bucket; it is asked once more before another is made.
	ReasonBucketMissing = "BucketMissing"
	// ReasonBucketVanished: the bucket was gone at the provider and is made again. An event's reason.
	ReasonBucketVanished = "BucketVanished"
	// ReasonBucketDeleted: the bucket is gone at the provider. An event's reason, too.
	ReasonBucketDeleted = "BucketDeleted"
	// ReasonBucketRetained: the bucket was left at the provider. An event's reason.
	ReasonBucketRetained = "BucketRetained"
	// ReasonResizeRefused: the provider refused the new size.
	ReasonResizeRefused = "ResizeRefused"
	// ReasonNotSupported: the provider cannot do it.
	ReasonNotSupported = "NotSupported"
	// ReasonNotReported: the provider does not say.
	ReasonNotReported = "NotReported"
	// ReasonApplied: it is as the spec wants it.
	ReasonApplied = "Applied"
	// ReasonResizing: the provider has taken the new size and does not have it yet.
	ReasonResizing = "Resizing"
	// ReasonResized: the provider has given the bucket the size of the spec. An event's reason.
	ReasonResized = "Resized"
	// ReasonSizeDiffers: the provider was asked for the size and gave another, say by rounding up.
	ReasonSizeDiffers = "SizeDiffers"
	// ReasonIDConflict: the provider gave another StorageBucket the same bucket.
	ReasonIDConflict = "IDConflict"
	// ReasonInUse: StorageBuckets use it.
	ReasonInUse = "InUse"
	// ReasonValid: it can be used.
	ReasonValid = "Valid"
	// ReasonWritten: the object in the cluster is as it should be.
	ReasonWritten = "Written"
	// ReasonLoopback: the endpoint is a loopback address, which means another machine in each pod.
	ReasonLoopback = "LoopbackEndpoint"
)

// GetConditions are the conditions of the status.
func (b *StorageBucket) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions sets the conditions of the status.
func (b *StorageBucket) SetConditions(conditions []metav1.Condition) {
	b.Status.Conditions = conditions
}

// GetObservedGeneration is the generation that the status tells of.
func (b *StorageBucket) GetObservedGeneration() int64 { return b.Status.ObservedGeneration }

// SetObservedGeneration sets the generation that the status tells of.
func (b *StorageBucket) SetObservedGeneration(generation int64) {
	b.Status.ObservedGeneration = generation
}

// GetConditions are the conditions of the status.
func (c *BucketProviderConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions sets the conditions of the status.
func (c *BucketProviderConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// GetObservedGeneration is the generation that the status tells of.
func (c *BucketProviderConfig) GetObservedGeneration() int64 { return c.Status.ObservedGeneration }

// SetObservedGeneration sets the generation that the status tells of.
func (c *BucketProviderConfig) SetObservedGeneration(generation int64) {
	c.Status.ObservedGeneration = generation
}
