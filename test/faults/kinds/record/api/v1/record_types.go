// Package v1 is the API of Record, a kind of the tests' own: a text that a server
// outside the cluster keeps, and a Deployment of what reads it there.
//
// +kubebuilder:object:generate=true
// +groupName=faults.example
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
)

var (
	// GroupVersion is the group and version of this package's kinds.
	GroupVersion = schema.GroupVersion{Group: "faults.example", Version: "v1"}

	schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &Record{}, &RecordList{})
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

const (
	// RecordFinalizer keeps a Record until the server has deleted what it keeps for it.
	RecordFinalizer = "faults.example/record"
	// KeyAnnotation is what the server knows the Record's text by. It is on the Record
	// before the first call that makes something there.
	KeyAnnotation = "faults.example/key"
)

// Conditions of a Record, beside those that all kinds have.
const (
	// ConditionKept is True when the server keeps the text of the spec.
	ConditionKept = "Kept"
	// ConditionDeployed is True when the Deployment is as it has to be.
	ConditionDeployed = "Deployed"
	// ConditionRecordDeleted tells how the deletion at the server fares.
	ConditionRecordDeleted = "RecordDeleted"
)

// Reasons of these conditions.
const (
	// ReasonWritten goes with what is as it has to be.
	ReasonWritten = "Written"
	// ReasonRecordDeleted: the server keeps nothing for the Record.
	ReasonRecordDeleted = "RecordDeleted"
	// ReasonServerUnavailable: the server cannot be reached, or does not answer.
	ReasonServerUnavailable = "ServerUnavailable"
	// ReasonAddressRefused: the operator does not connect to the address of the server.
	ReasonAddressRefused = "AddressRefused"
	// ReasonServerRefused: the server has refused a call.
	ReasonServerRefused = "ServerRefused"
	// ReasonDeploymentConflict: the Deployment's name is taken by somebody else's.
	ReasonDeploymentConflict = "DeploymentConflict"
)

// RecordSpec is the text, and who keeps it.
type RecordSpec struct {
	// server is the host and port of the server that keeps the text, such as
	// records.example.com:7070. It cannot be changed.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=259
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z._-]+:[0-9]{1,5}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="server cannot be changed: make another Record"
	Server string `json:"server,omitempty"`

	// text is what the server keeps: one line of printable ASCII.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[ -~]+$`
	Text string `json:"text,omitempty"`

	// inheritedMetadata is labels and annotations for the Deployment. Left out, it has the operator's own only.
	// +optional
	InheritedMetadata *apimeta.InheritedMetadata `json:"inheritedMetadata,omitempty"`
}

// RecordStatus is what the operator observed. Only the operator writes it.
type RecordStatus struct {
	// observedGeneration is the generation of the spec that this status tells of.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// key is what the server knows the text by, once it keeps it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Key string `json:"key,omitempty"`

	// conditions say how the Record is: Ready is their summary.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Record is a text that a server outside the cluster keeps, and a Deployment of
// what reads it there.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Record struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the object's name, labels and so on.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the text, and who keeps it.
	// +required
	Spec RecordSpec `json:"spec,omitzero"`

	// status is what the operator observed.
	// +optional
	Status RecordStatus `json:"status,omitzero"`
}

// GetConditions implements engine.Object.
func (r *Record) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions implements engine.Object.
func (r *Record) SetConditions(conditions []metav1.Condition) { r.Status.Conditions = conditions }

// SetObservedGeneration implements engine.Object.
func (r *Record) SetObservedGeneration(generation int64) { r.Status.ObservedGeneration = generation }

// RecordList is a list of Records.
//
// +kubebuilder:object:root=true
type RecordList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the list's own: its resourceVersion and where it goes on.
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the Records.
	Items []Record `json:"items"`
}
