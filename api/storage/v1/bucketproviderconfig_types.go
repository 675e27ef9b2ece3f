package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderType is the protocol that a provider speaks.
// +kubebuilder:validation:Enum=HTTP
type ProviderType string

// ProviderTypeHTTP is the small HTTP API that docs/http-provider.md describes.
const ProviderTypeHTTP ProviderType = "HTTP"

// DefaultBucketProviderConfigName is the name of the BucketProviderConfig that
// serves the buckets of its namespace that name none.
const DefaultBucketProviderConfigName = "default"

// BucketProviderConfigSpec is how a provider is reached.
type BucketProviderConfigSpec struct {
	// type is the protocol that the provider speaks. HTTP, the default, is the only one.
	// +optional
	// +default="HTTP"
	Type ProviderType `json:"type,omitempty"`

	// endpoint is the provider's URL, http or https, with neither user, query nor fragment. Link-local
	// and metadata addresses are refused, loopback ones too unless the operator allows them; a host
	// name is checked each time it has been resolved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@]+(/[^?#]*)?$') && isURL(self)",message="endpoint must be a URL such as https://buckets.example.com, http or https, with neither user, query nor fragment"
	Endpoint string `json:"endpoint,omitempty"`

	// secretRef names the Secret with the provider's credentials. Left out, calls carry none.
	// +optional
	SecretRef SecretReference `json:"secretRef,omitempty,omitzero"`

	// rateLimit bounds the calls to the provider of all buckets that use this object, together.
	// +optional
	RateLimit RateLimit `json:"rateLimit,omitempty,omitzero"`

	// resyncInterval is how often each bucket is compared with what the provider has, such as 10m or 1h.
	// It is spread by up to a tenth. At least 1s; left out, the operator's --resync-interval holds.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="resyncInterval must be between 1s and 24h"
	ResyncInterval *metav1.Duration `json:"resyncInterval,omitempty"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// name is the Secret's name. For a provider of type HTTP its key apiKey is sent as a bearer token.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="name is the name of a Secret in the same namespace: lower case letters, digits, '-' and '.'"
	Name string `json:"name,omitempty"`
}

// RateLimit is a token bucket.
// +kubebuilder:validation:MinProperties=1
type RateLimit struct {
	// qps is how many calls a second are allowed on average. Left out, 500.
	// +optional
	// +default=500
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	QPS int32 `json:"qps,omitempty"`

	// burst is how many calls may be made at once after a quiet time. Left out, 1000.
	// +optional
	// +default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Burst int32 `json:"burst,omitempty"`
}

// BucketProviderConfigStatus is what the operator observed. Only the operator writes it.
type BucketProviderConfigStatus struct {
	// observedGeneration is the generation of the spec that this status tells of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say whether buckets can use this object: Ready is their summary. Reconciling and
	// Stalled are present only while true; DeletionBlocked only while buckets keep it from going.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BucketProviderConfig is how a provider of buckets is reached: its protocol,
// its address, its credentials and its limits. StorageBuckets of the same
// namespace use it by name. It says where a Secret of the namespace is sent: that
// is for the namespace's admins to choose, not for everybody who may edit in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bpc,categories={storage,bucketoperator}
// +kubebuilder:metadata:annotations="avalonhosting.example/edited-by=admin"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.spec.endpoint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type BucketProviderConfig struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's name, labels and so on.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is how the provider is reached.
	// +required
	Spec BucketProviderConfigSpec `json:"spec,omitzero"`

	// status is what the operator observed.
	// +optional
	Status BucketProviderConfigStatus `json:"status,omitzero"`
}

// BucketProviderConfigList is a list of BucketProviderConfigs.
//
// +kubebuilder:object:root=true
type BucketProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the list's own: its resourceVersion and where it goes on.
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the BucketProviderConfigs.
	Items []BucketProviderConfig `json:"items"`
}
