package operator_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/test/e2e/audit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
)

// unusedFor are grants that a run may not be in need of, with the reason why the
// operator has them.
var unusedFor = map[string]string{
	"bucketoperator-manager-role: patch events.events.k8s.io": "an event that comes again soon becomes a series: it depends on the time whether a run needs it",
}

// permissions compares what the operator was granted with what it asked for in
// the whole run.
func (s *suite) permissions(t *testing.T) {
	all := installation.Requests(t, s.begun)
	for _, r := range audit.Denied(all, installation.User) {
		t.Errorf("forbidden: %s", r)
	}
	grants := s.grants(t)
	unused := audit.Unused(grants, all, installation.User)
	t.Logf("of %d grants %d were in use", len(grants), len(grants)-len(unused))
	for _, g := range unused {
		if reason := unusedFor[g.String()]; reason != "" {
			t.Logf("not in use: %s, granted as: %s", g, reason)
			continue
		}
		t.Errorf("not in use, and no reason is listed: %s", g)
	}
	for listed := range unusedFor {
		if !slices.ContainsFunc(grants, func(g audit.Grant) bool { return g.String() == listed }) {
			t.Errorf("listed as not in use, but not granted: %s", listed)
		}
	}
}

// grants are those of all roles that are bound to the operator's ServiceAccount.
func (s *suite) grants(t *testing.T) []audit.Grant {
	t.Helper()
	clusterBindings, bindings := &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}
	for _, list := range []client.ObjectList{clusterBindings, bindings} {
		if err := s.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	var grants []audit.Grant
	for _, b := range clusterBindings.Items {
		if bindsOperator(b.Subjects) {
			grants = append(grants, audit.Grants(b.RoleRef.Name, "", s.rules(t, b.RoleRef, ""))...)
		}
	}
	for _, b := range bindings.Items {
		if bindsOperator(b.Subjects) {
			grants = append(grants, audit.Grants(b.RoleRef.Name, b.Namespace, s.rules(t, b.RoleRef, b.Namespace))...)
		}
	}
	if len(grants) == 0 {
		t.Fatal("nothing is granted to the operator")
	}
	return grants
}

func bindsOperator(subjects []rbacv1.Subject) bool {
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind && s.Namespace == installation.Namespace && s.Name == installation.Deployment {
			return true
		}
	}
	return false
}

func (s *suite) rules(t *testing.T, ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	t.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	if ref.Kind == "ClusterRole" {
		role := &rbacv1.ClusterRole{}
		if err := s.client.Get(t.Context(), client.ObjectKey{Name: ref.Name}, role); err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	role := &rbacv1.Role{}
	if err := s.client.Get(t.Context(), key, role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}
