package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// need is something that the operator must be allowed to do.
type need struct {
	group, resource string
	subresource     string // such as status; empty means the object itself
	name            string // of the one object; empty means any
	verbs           []string
}

// controllerNeeds are what each group of controllers needs in the namespaces
// that it works in. They are the rules of config/rbac/role.yaml, for one.
var controllerNeeds = map[string][]need{
	"storagebucket": {
		{group: storagev1.GroupName, resource: "storagebuckets", verbs: []string{"get", "list", "watch", "patch"}},
		{group: storagev1.GroupName, resource: "storagebuckets", subresource: "status", verbs: []string{"patch"}},
		{group: storagev1.GroupName, resource: "bucketproviderconfigs", verbs: []string{"get", "list", "watch", "patch"}},
		{group: storagev1.GroupName, resource: "bucketproviderconfigs", subresource: "status", verbs: []string{"patch"}},
		{resource: "secrets", verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{resource: "services", verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{group: "discovery.k8s.io", resource: "endpointslices", verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{group: "events.k8s.io", resource: "events", verbs: []string{"create", "patch"}},
	},
}

// leaderNeeds are what leader election needs in the namespace of the lease.
var leaderNeeds = []need{
	{group: "coordination.k8s.io", resource: "leases", verbs: []string{"create"}},
	{group: "coordination.k8s.io", resource: "leases", name: leaseName, verbs: []string{"get", "update"}},
}

// metricsNeeds are what it takes to ask who a caller of /metrics is.
var metricsNeeds = []need{
	{group: "authentication.k8s.io", resource: "tokenreviews", verbs: []string{"create"}},
	{group: "authorization.k8s.io", resource: "subjectaccessreviews", verbs: []string{"create"}},
}

// checkPermissions fails with all that is not allowed. Whether it is, it asks
// the API server: only that one knows, whatever authorizes there.
func checkPermissions(ctx context.Context, config *rest.Config, o options) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("using the configuration of the cluster: %w", err)
	}
	namespaces := o.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	review := permissionReview{client: client}
	for _, namespace := range namespaces {
		for _, group := range o.controllers {
			review.ask(ctx, namespace, controllerNeeds[group])
		}
	}
	if o.leader.elect {
		review.ask(ctx, o.leader.namespace, leaderNeeds)
	}
	if o.metrics.enabled() && o.metrics.secure {
		review.ask(ctx, metav1.NamespaceAll, metricsNeeds)
	}
	return review.verdict(ctx)
}

// permissionReview collects what is not allowed, up to the first question that
// could not be asked.
type permissionReview struct {
	client  kubernetes.Interface
	missing []string
	err     error
}

func (r *permissionReview) ask(ctx context.Context, namespace string, needs []need) {
	for _, n := range needs {
		var denied []string
		for _, verb := range n.verbs {
			if r.err == nil && !r.allowed(ctx, namespace, verb, n) {
				denied = append(denied, verb)
			}
		}
		if r.err == nil && len(denied) > 0 {
			r.missing = append(r.missing, describe(strings.Join(denied, ","), n, namespace))
		}
	}
}

func (r *permissionReview) allowed(ctx context.Context, namespace, verb string, n need) bool {
	answer, err := r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: n.group, Resource: n.resource, Subresource: n.subresource, Name: n.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		r.err = err
		return false
	}
	return answer.Status.Allowed
}

// describe names a permission as `kubectl auth can-i` takes it.
func describe(verbs string, n need, namespace string) string {
	resource := n.resource
	if n.group != "" {
		resource += "." + n.group
	}
	if part := cmp.Or(n.subresource, n.name); part != "" {
		resource += "/" + part
	}
	where := "in all namespaces"
	if namespace != metav1.NamespaceAll {
		where = "in namespace " + namespace
	}
	return fmt.Sprintf("%s %s %s", verbs, resource, where)
}

func (r *permissionReview) verdict(ctx context.Context) error {
	switch {
	case apierrors.IsForbidden(r.err):
		// Some clusters take even this question from those they do not know.
		ctrl.Log.Info("Permissions were not checked: this user may not ask for them", "error", r.err.Error())
		return nil
	case r.err != nil:
		return fmt.Errorf("asking the API server for permissions: %w", r.err)
	case len(r.missing) == 0:
		return nil
	}
	return fmt.Errorf("%s may not %s: apply the roles and bindings of config/rbac, as `make deploy` does",
		r.user(ctx), strings.Join(r.missing, "; "))
}

// user is who the API server takes this process for.
func (r *permissionReview) user(ctx context.Context) string {
	answer, err := r.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "this user"
	}
	return "user " + answer.Status.UserInfo.Username
}
