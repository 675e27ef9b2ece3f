package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/internal/operator"
)

// need is something that the operator must be allowed to do.
type need struct {
	group, resource string
	subresource     string // such as status; empty means the object itself
	name            string // of the one object; empty means any
	verbs           []string
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

// controllerNeeds are what the named controllers, or all, need in the namespaces
// that they work in: the rules of the role, which is generated for all of them,
// less those for the kinds of groups that are not named.
func controllerNeeds(role []byte, definitions []operator.Definition, names []string) ([]need, error) {
	var generated rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(role, &generated); err != nil {
		return nil, fmt.Errorf("reading the role that the operator was built with: %w", err)
	}
	left := map[string]bool{}
	for _, d := range definitions {
		left[d.GroupVersion.Group] = true
	}
	for _, d := range operator.Named(definitions, names) {
		left[d.GroupVersion.Group] = false
	}
	var needs []need
	for _, rule := range generated.Rules {
		for _, group := range rule.APIGroups {
			if left[group] {
				continue
			}
			for _, resource := range rule.Resources {
				needs = append(needs, needsOf(rule, group, resource)...)
			}
		}
	}
	return needs, nil
}

// needsOf are what a rule gives of one resource, for each object that it names.
func needsOf(rule rbacv1.PolicyRule, group, resource string) []need {
	n := need{group: group, verbs: slices.SortedFunc(slices.Values(rule.Verbs), byUse)}
	n.resource, n.subresource, _ = strings.Cut(resource, "/")
	if len(rule.ResourceNames) == 0 {
		return []need{n}
	}
	needs := make([]need, 0, len(rule.ResourceNames))
	for _, n.name = range rule.ResourceNames {
		needs = append(needs, n)
	}
	return needs
}

// verbsByUse are the verbs in the order in which people list them.
var verbsByUse = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

func byUse(a, b string) int {
	return cmp.Or(cmp.Compare(slices.Index(verbsByUse, a), slices.Index(verbsByUse, b)), cmp.Compare(a, b))
}
