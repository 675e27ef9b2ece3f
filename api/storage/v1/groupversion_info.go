// Package v1 is the API of StorageBucket, a bucket at a provider outside the
// cluster, and of BucketProviderConfig, how that provider is reached.
//
// +kubebuilder:object:generate=true
// +groupName=storage.avalonhosting.example
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package=applyconfiguration
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package's kinds.
const GroupName = "storage.avalonhosting.example"

var (
	// GroupVersion is the group and version of this package's kinds.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

	// SchemeGroupVersion is GroupVersion under the name that generated code knows it by.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&StorageBucket{}, &StorageBucketList{},
		&BucketProviderConfig{}, &BucketProviderConfigList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
