package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/internal/controllers"
)

// What preflight asks for and what the manifests give must be the same: a
// permission that only one of them knows is missed too late, or given for
// nothing.
func TestNeedsAreTheRulesOfTheManifests(t *testing.T) {
	t.Parallel()
	var all []need
	for _, group := range controllers.Groups {
		all = append(all, controllerNeeds[group]...)
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
