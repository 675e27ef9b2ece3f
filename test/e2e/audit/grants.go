package audit

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Grant is one verb on one thing, as a role gives it.
type Grant struct {
	// Role is the name of the role that gives it.
	Role string
	// Namespace is where it holds; empty for all.
	Namespace string
	// Verb, Group and Resource are as in a rule.
	Verb, Group, Resource string
	// Name is the one object that it holds for; empty for all.
	Name string
	// URL is a path that is no object's; Group, Resource and Name are empty then.
	URL string
}

// String is the grant on one line, as a list of exceptions names it.
func (g Grant) String() string {
	what := g.URL
	if what == "" {
		what = qualified(g.Group, g.Resource)
	}
	if g.Name != "" {
		what += "/" + g.Name
	}
	return g.Role + ": " + g.Verb + " " + what
}

// Grants are what rules give, each verb on each thing by itself.
func Grants(role, namespace string, rules []rbacv1.PolicyRule) []Grant {
	var grants []Grant
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				grants = append(grants, Grant{Role: role, Verb: verb, URL: url})
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range orAll(rule.ResourceNames) {
						grants = append(grants, Grant{
							Role: role, Namespace: namespace, Verb: verb, Group: group, Resource: resource, Name: name,
						})
					}
				}
			}
		}
	}
	return grants
}

func orAll(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// Covers tells whether the grant allows the request.
func (g Grant) Covers(r Request) bool {
	if g.Verb != r.Verb {
		return false
	}
	if g.URL != "" {
		return r.Resource == "" && g.URL == r.Path
	}
	return g.Group == r.Group && g.Resource == r.Resource &&
		(g.Namespace == "" || g.Namespace == r.Namespace) && (g.Name == "" || g.Name == r.Name)
}

// Unused are the grants that no request of the user was in need of, sorted.
func Unused(grants []Grant, requests []Request, user string) []Grant {
	var unused []Grant
	for _, g := range grants {
		if !slices.ContainsFunc(requests, func(r Request) bool { return r.User == user && !r.Denied && g.Covers(r) }) {
			unused = append(unused, g)
		}
	}
	slices.SortFunc(unused, func(a, b Grant) int { return cmp.Compare(a.String(), b.String()) })
	return unused
}

// Denied are the requests of the user that were refused for want of a right.
func Denied(requests []Request, user string) []Request {
	var refused []Request
	for _, r := range requests {
		if r.User == user && r.Denied {
			refused = append(refused, r)
		}
	}
	return refused
}
