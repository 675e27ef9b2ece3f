package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/config"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/operator"
)

func TestRulesForKindsOfOtherGroupsAreNotNeeded(t *testing.T) {
	t.Parallel()
	const role = `
kind: ClusterRole
rules:
- {apiGroups: [a.example], resources: [as, as/status], verbs: [patch, list, get]}
- {apiGroups: [b.example], resources: [bs], verbs: [get]}
- {apiGroups: [""], resources: [secrets], resourceNames: [one, two], verbs: [get]}
`
	definitions := []operator.Definition{
		{Name: "a", GroupVersion: schema.GroupVersion{Group: "a.example"}},
		{Name: "b", GroupVersion: schema.GroupVersion{Group: "b.example"}},
	}
	secrets := []need{
		{resource: "secrets", name: "one", verbs: []string{"get"}},
		{resource: "secrets", name: "two", verbs: []string{"get"}},
	}
	verbs := []string{"get", "list", "patch"}
	ofA := []need{{group: "a.example", resource: "as", verbs: verbs}, {group: "a.example", resource: "as", subresource: "status", verbs: verbs}}
	ofB := []need{{group: "b.example", resource: "bs", verbs: []string{"get"}}}
	for _, test := range []struct {
		names []string
		want  []need
	}{
		{[]string{"a"}, slices.Concat(ofA, secrets)},
		{[]string{"b"}, slices.Concat(ofB, secrets)},
		{nil, slices.Concat(ofA, ofB, secrets)},
	} {
		got, err := controllerNeeds([]byte(role), definitions, test.names)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(need{})); diff != "" {
			t.Errorf("with --controllers=%v (-want +got):\n%s", test.names, diff)
		}
	}
}

// What preflight asks for and what the manifests give must be the same: a
// permission that only one of them knows is missed too late, or given for
// nothing.
func TestNeedsAreTheRulesOfTheManifests(t *testing.T) {
	t.Parallel()
	all, err := controllerNeeds(config.ManagerRole, controllers.Definitions, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, needs := range map[string][]need{"role.yaml": all, "metrics_auth_role.yaml": metricsNeeds} {
		if diff := cmp.Diff(rulesOf(t, file), verbsByResource(needs)); diff != "" {
			t.Errorf("config/rbac/%s (-) and what is asked for (+):\n%s", file, diff)
		}
	}
	// It also has the events that tell of a new leader, which may fail.
	rules := rulesOf(t, "leader_election_role.yaml")
	delete(rules, "events")
	if diff := cmp.Diff(rules, verbsByResource(leaderNeeds)); diff != "" {
		t.Errorf("config/rbac/leader_election_role.yaml (-) and what is asked for (+):\n%s", diff)
	}
}

func rulesOf(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", file))
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	verbs := map[string][]string{}
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
					add(verbs, key(group, resource, name), rule.Verbs)
				}
			}
		}
	}
	return sorted(verbs)
}

func verbsByResource(needs []need) map[string][]string {
	verbs := map[string][]string{}
	for _, n := range needs {
		resource := n.resource
		if n.subresource != "" {
			resource += "/" + n.subresource
		}
		add(verbs, key(n.group, resource, n.name), n.verbs)
	}
	return sorted(verbs)
}

func key(group, resource, name string) string {
	if group != "" {
		resource += "." + group
	}
	if name != "" {
		resource += " " + name
	}
	return resource
}

func add(verbs map[string][]string, to string, more []string) { verbs[to] = append(verbs[to], more...) }

func sorted(verbs map[string][]string) map[string][]string {
	for resource := range maps.Keys(verbs) {
		slices.Sort(verbs[resource])
		verbs[resource] = slices.Compact(verbs[resource])
	}
	return verbs
}
