package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// preflightTimeout bounds each call before the start.
const preflightTimeout = 10 * time.Second

// preflight finds what would otherwise end in watches that fail for ever, and
// in a log that nobody reads: no API server, no CRDs, no permission. The result
// is the namespaces to work in, none for all.
func preflight(ctx context.Context, config *rest.Config, o options) ([]string, error) {
	config = rest.CopyConfig(config)
	config.Timeout = preflightTimeout
	if err := checkKinds(ctx, config, operator.Named(controllers.Definitions, o.controllers)); err != nil {
		return nil, err
	}
	return checkPermissions(ctx, config, o)
}

// checkKinds is also the first call to the API server.
func checkKinds(ctx context.Context, config *rest.Config, definitions []operator.Definition) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("using the configuration of the cluster: %w", err)
	}
	var missing []string
	for _, d := range definitions {
		lacks, err := missingKinds(ctx, client, d)
		switch {
		case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
			return fmt.Errorf("the API server at %s does not take the credentials: %w; check those of the kubeconfig or ServiceAccount", config.Host, err)
		case ctx.Err() != nil:
			return errors.New("told to stop before the API server answered")
		case err != nil:
			return fmt.Errorf("asking the API server at %s for its kinds: %w; check that it runs and can be reached from here", config.Host, err)
		}
		if len(lacks) > 0 {
			missing = append(missing, strings.Join(lacks, " and no ")+" of "+d.GroupVersion.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the cluster has no %s: install the CRDs, by `make install` or `kubectl apply --server-side -k config/crd`",
			strings.Join(missing, ", and no "))
	}
	return nil
}

// missingKinds are those of a group that the cluster does not serve.
func missingKinds(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, d operator.Definition) ([]string, error) {
	served, err := client.ServerResourcesForGroupVersionWithContext(ctx, d.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return d.KindNames(), nil
	case err != nil:
		return nil, err
	}
	return slices.DeleteFunc(d.KindNames(), func(kind string) bool {
		return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind })
	}), nil
}
