package v1

// InheritedMetadata is labels and annotations for the objects in the cluster
// that an object owns, say because a policy asks for them.
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, !format.qualifiedName().validate(k).hasValue())",message="a key of labels is not a name that a label can have"
// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(k, !format.labelValue().validate(self.labels[k]).hasValue())",message="a value of labels is not one that a label can have: at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, !format.qualifiedName().validate(k).hasValue())",message="a key of annotations is not a name that an annotation can have"
// +kubebuilder:validation:XValidation:rule="(!has(self.labels) || self.labels.all(k, k != 'app.kubernetes.io/managed-by' && k != 'kubernetes.io/service-name')) && (!has(self.annotations) || self.annotations.all(k, !k.startsWith('bucketoperator.avalonhosting.example/')))",message="app.kubernetes.io/managed-by, kubernetes.io/service-name and what begins with bucketoperator.avalonhosting.example/ are the operator's own"
type InheritedMetadata struct {
	// labels are put on each owned object. One that is taken out here goes from the objects too.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are put on each owned object. One that is taken out here goes from the objects too.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// AnnotationValue is the value of an annotation, of at most 256 characters.
// +kubebuilder:validation:MaxLength=256
type AnnotationValue string
