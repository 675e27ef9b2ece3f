package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folder makes a folder like config, with an old list everywhere.
func folder(t *testing.T, crds map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"crd/kustomization.yaml":         "# Kept.\nresources:\n- bases/old.yaml\nlabels: []\n",
		"rbac/kustomization.yaml":        "resources:\n- role.yaml # kept\n- old_user_roles.yaml\n",
		"rbac/old_user_roles.yaml":       "old",
		"rbac/role.yaml":                 "kept",
		"argocd/kustomization.yaml":      "  files:\n  - resource.customizations.health.old_Old=health.lua\n  options: {}\n",
		"samples/kustomization.yaml":     "resources:\n- old.yaml\n",
		"samples/cache_v1_cache.yaml":    "",
		"samples/cache_v1_cache_ha.yaml": "",
	}
	for name, text := range crds {
		files["crd/bases/"+name] = text
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	cacheCRD = `
metadata: {name: caches.cache.example}
spec: {group: cache.example, names: {kind: Cache, singular: cache, plural: caches}}
`
	planCRD = `
metadata: {name: plans.cache.example, annotations: {avalonhosting.example/edited-by: admin}}
spec: {group: cache.example, names: {kind: Plan, singular: plan, plural: plans}}
`
)

func TestEachKindIsInEachListAndWhatPeopleWroteStays(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"cache.example_caches.yaml": cacheCRD, "cache.example_plans.yaml": planCRD})
	for range 2 { // the second time changes nothing
		if err := write(root); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{
			"crd/kustomization.yaml":  "# Kept.\nresources:\n- bases/cache.example_caches.yaml\n- bases/cache.example_plans.yaml\nlabels: []\n",
			"rbac/kustomization.yaml": "resources:\n- role.yaml # kept\n- cache_user_roles.yaml\n- plan_user_roles.yaml\n",
			"argocd/kustomization.yaml": "  files:\n  - resource.customizations.health.cache.example_Cache=health.lua\n" +
				"  - resource.customizations.health.cache.example_Plan=health.lua\n  options: {}\n",
			"samples/kustomization.yaml": "resources:\n- cache_v1_cache.yaml\n- cache_v1_cache_ha.yaml\n",
			"rbac/role.yaml":             "kept",
		} {
			if diff := cmp.Diff(want, read(t, root, file)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(root, "rbac", "old_user_roles.yaml")); !os.IsNotExist(err) {
		t.Errorf("the roles of a kind that is gone are there: %v", err)
	}
}

func TestOnlyAdminsEditWhatIsMarkedSo(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"cache.example_caches.yaml": cacheCRD, "cache.example_plans.yaml": planCRD})
	if err := write(root); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]int{"rbac/cache_user_roles.yaml": 1, "rbac/plan_user_roles.yaml": 0} {
		if got := strings.Count(read(t, root, file), "aggregate-to-edit"); got != want {
			t.Errorf("%s adds to edit %d times, want %d", file, got, want)
		}
	}
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		crds map[string]string
		undo string // a list that is lost
		want string
	}{
		"no definitions":  {nil, "", "no definitions"},
		"unknown editors": {map[string]string{"a.yaml": strings.ReplaceAll(planCRD, ": admin", ": nobody")}, "", `"nobody"`},
		"a list is lost":  {map[string]string{"a.yaml": cacheCRD}, "samples/kustomization.yaml", "0 lists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := folder(t, test.crds)
			if test.undo != "" {
				if err := os.WriteFile(filepath.Join(root, test.undo), []byte("resources: []\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := write(root); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
