package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"avalonhosting.example/bucketoperator/internal/operator"
)

// Options are what the controllers are set up with.
type Options = operator.Options

// Bounds are the least and the greatest of delays.
type Bounds = operator.Bounds

// NewScheme is the scheme of all kinds that the operator deals with.
func NewScheme() *runtime.Scheme { return operator.NewScheme(Definitions) }

// CacheOptions are those of the manager's cache. Empty namespaces mean all.
func CacheOptions(namespaces []string) cache.Options {
	return operator.CacheOptions(Definitions, namespaces)
}

// SetUp adds the controllers to the manager, whose cache must have been made
// with CacheOptions for the same namespaces.
func SetUp(ctx context.Context, mgr ctrl.Manager, namespaces []string, options Options) error {
	_, err := operator.SetUp(ctx, mgr, Definitions, namespaces, options)
	return err
}
