package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
)

// DeletionPolicy says what becomes of the bucket at the provider when its
// StorageBucket is deleted.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

const (
	// DeletionPolicyDelete deletes the bucket at the provider first, then lets the StorageBucket go.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain lets the StorageBucket go and leaves the bucket at the provider as it is.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// BucketPhase is a one-word summary of where a bucket is in its life. The
// conditions say more; programs should read those.
// +kubebuilder:validation:Enum=Provisioning;Active;Failed;Deleting
type BucketPhase string

const (
	// BucketPhaseProvisioning means that the bucket is being made, or waits for what it needs.
	BucketPhaseProvisioning BucketPhase = "Provisioning"
	// BucketPhaseActive means that the provider serves the bucket.
	BucketPhaseActive BucketPhase = "Active"
	// BucketPhaseFailed means that the provider refused or lost the bucket for good, or that the spec
	// cannot be carried out: somebody has to change something.
	BucketPhaseFailed BucketPhase = "Failed"
	// BucketPhaseDeleting means that the bucket is being deleted.
	BucketPhaseDeleting BucketPhase = "Deleting"
)

// CreateOutcome is what is known of the create calls of a bucket that has no id.
// +kubebuilder:validation:Enum=Refused;NotSent
type CreateOutcome string

const (
	// CreateOutcomeRefused means that every create call so far got a definite
	// answer that nothing was created, so nothing has to be deleted either.
	CreateOutcomeRefused CreateOutcome = "Refused"
	// CreateOutcomeNotSent means that no create call was sent yet, as the rate
	// limit did not allow one.
	CreateOutcomeNotSent CreateOutcome = "NotSent"
)

// StorageBucketSpec is the bucket that is wanted.
type StorageBucketSpec struct {
	// region is where the provider keeps the bucket, in the provider's own spelling, such as us-east-1.
	// It cannot be changed: data would have to move.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="region cannot be changed: delete this StorageBucket and create another in the new region"
	Region string `json:"region,omitempty"`

	// sizeGB is the size of the bucket in gigabytes, at least 1. It may be raised and lowered; the provider
	// decides. If it refuses this size, as many refuse a smaller one, the bucket stays as it was, and the
	// conditions SizeApplied and Ready are False with reason ResizeRefused. If it cannot resize, or makes
	// another size, SizeApplied alone is False, with reason NotSupported or SizeDiffers.
	// +required
	// +kubebuilder:validation:Minimum=1
	SizeGB int32 `json:"sizeGB,omitempty"`

	// encrypted asks the provider to encrypt the bucket at rest. Left out, it means false.
	// A provider that does not say what it did is reported in the condition EncryptionApplied.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// providerRef is the name of the BucketProviderConfig, in this namespace, that serves the bucket.
	// Left out, the one named default serves it and, where there is none, the endpoint that the
	// operator was given as its default. It cannot be changed once the bucket exists.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="providerRef is the name of a BucketProviderConfig in the same namespace: lower case letters, digits, '-' and '.'"
	ProviderRef string `json:"providerRef,omitempty"`

	// deletionPolicy says what becomes of the bucket at the provider when this object is deleted:
	// Delete (the default) deletes it first, Retain leaves it as it is. Setting Retain on an object
	// that is already being deleted lets it go at once.
	// +optional
	// +default="Delete"
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// inheritedMetadata is labels and annotations for the objects in the cluster that this one owns: its
	// Secret, its Service and its EndpointSlice. Left out, they carry the operator's own alone.
	// +optional
	InheritedMetadata *apimeta.InheritedMetadata `json:"inheritedMetadata,omitempty"`
}

// StorageBucketStatus is what the operator observed. Only the operator writes it.
type StorageBucketStatus struct {
	// observedGeneration is the generation of the spec that this status tells of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is Provisioning, Active, Failed or Deleting.
	// +optional
	Phase BucketPhase `json:"phase,omitempty"`

	// id is the bucket's name at the provider, given by the provider.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id,omitempty"`

	// vanishedID is the id of a bucket that the provider does not know any more, while it is asked once
	// more and while another is made in its place.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	VanishedID string `json:"vanishedID,omitempty"`

	// endpoint is the URL under which the provider was reached for this bucket.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint,omitempty"`

	// region is where the bucket is, as the provider reported it. Empty when the provider does not say.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// sizeGB is the size in gigabytes that the provider reported or, from a provider that reports none,
	// the last size that it accepted.
	// +optional
	// +kubebuilder:validation:Minimum=1
	SizeGB int32 `json:"sizeGB,omitempty"`

	// encrypted is whether the bucket is encrypted at rest, as the provider reported it. Left out when
	// the provider does not say.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// createOutcome is set while it is certain that there is no bucket: Refused when every call to
	// create one was definitely refused, NotSent when none was sent yet. Deleting such an object needs
	// no provider.
	// +optional
	CreateOutcome CreateOutcome `json:"createOutcome,omitempty"`

	// provider is the provider configuration that this status was observed through.
	// +optional
	Provider ObservedProvider `json:"provider,omitempty,omitzero"`

	// binding names the Secret that an application binds to, as a Provisioned Service of
	// servicebinding.io.
	// +optional
	Binding Binding `json:"binding,omitempty,omitzero"`

	// conditions say how the bucket is: Ready is their summary. Reconciling and Stalled are present
	// only while true; DeletionBlocked only while a deletion cannot go on.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ObservedProvider is the provider configuration that a status was observed through.
// +kubebuilder:validation:MinProperties=1
type ObservedProvider struct {
	// name is the BucketProviderConfig's name. Empty for the operator's default endpoint.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// revision identifies the state of the BucketProviderConfig and of its Secret. It is made of their
	// uids and versions, of nothing that is in the Secret.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Revision string `json:"revision,omitempty"`
}

// Binding names a Secret, in the shape that servicebinding.io asks for.
type Binding struct {
	// name is the name of a Secret in the same namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// StorageBucket is a bucket at a provider outside the cluster. Its Secret
// <name>-access tells an application how to reach it, and its Service <name>
// is the provider's address inside the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sbucket,categories={storage,bucketoperator}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="ID",type=string,JSONPath=`.status.id`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="SizeGB",type=integer,JSONPath=`.status.sizeGB`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Provider",type=string,priority=1,JSONPath=`.status.provider.name`
// +kubebuilder:printcolumn:name="Endpoint",type=string,priority=1,JSONPath=`.status.endpoint`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="metadata.name is also the name of the bucket's Service: at most 63 lower case letters, digits and '-', beginning with a letter, ending with a letter or digit"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.id) || (has(self.spec.providerRef) == has(oldSelf.spec.providerRef) && (!has(self.spec.providerRef) || self.spec.providerRef == oldSelf.spec.providerRef))",fieldPath=".spec.providerRef",message="providerRef cannot be changed once the bucket exists: its data is at the present provider"
type StorageBucket struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's name, labels and so on.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the bucket that is wanted.
	// +required
	Spec StorageBucketSpec `json:"spec,omitzero"`

	// status is what the operator observed.
	// +optional
	Status StorageBucketStatus `json:"status,omitzero"`
}

// StorageBucketList is a list of StorageBuckets.
//
// +kubebuilder:object:root=true
type StorageBucketList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the list's own: its resourceVersion and where it goes on.
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the StorageBuckets.
	Items []StorageBucket `json:"items"`
}
