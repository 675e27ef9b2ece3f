// Package v1 is what the operator's kinds have in common, for clients to import
// too: the types of conditions and their reasons, and parts of specs.
//
// +kubebuilder:object:generate=true
package v1
