package controllers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/operator"
	"avalonhosting.example/bucketoperator/localcluster"
)

func TestTheDefinitionsAreValid(t *testing.T) {
	t.Parallel()
	if err := operator.Validate(Definitions); err != nil {
		t.Error(err)
	}
}

// documents are all YAML documents of the files that match, by file.
func documents(t *testing.T, pattern ...string) map[string][]string {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(append([]string{root}, pattern...)...))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = strings.Split(string(text), "\n---\n")
	}
	return all
}

// parse reads the first document of a file.
func parse[T any](t *testing.T, file, text string) T {
	t.Helper()
	var object T
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

// What belongs to a kind beside its code: see docs/adding-a-kind.md.
func TestEachKindIsWholeAndEachCRDHasItsDefinition(t *testing.T) {
	t.Parallel()
	var sampled []metav1.TypeMeta
	for file, texts := range documents(t, "config", "samples", "*.yaml") {
		for _, text := range texts {
			sampled = append(sampled, parse[metav1.TypeMeta](t, file, text))
		}
	}
	roles := documents(t, "config", "rbac", "*_user_roles.yaml")
	pages := documents(t, "docs", "*.md")
	defined := 0
	for _, d := range Definitions {
		defined += len(d.Kinds)
		for _, kind := range d.Kinds {
			if _, is := kind.Object.(engine.Object); !is {
				t.Errorf("%T is no engine.Object", kind.Object)
			}
		}
	}
	crds := documents(t, "config", "crd", "bases", "*.yaml")
	if len(crds) != defined {
		t.Errorf("there are %d CRDs, and %d kinds are defined", len(crds), defined)
	}
	for file, texts := range crds {
		crd := parse[apiextensionsv1.CustomResourceDefinition](t, file, texts[0])
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			t.Parallel()
			kind, singular := crd.Spec.Names.Kind, crd.Spec.Names.Singular
			i := slices.IndexFunc(Definitions, func(d operator.Definition) bool {
				return d.GroupVersion.Group == crd.Spec.Group && slices.Contains(d.KindNames(), kind)
			})
			if i < 0 {
				t.Fatal("no definition has it among its kinds")
			}
			if !slices.Contains(sampled, metav1.TypeMeta{APIVersion: Definitions[i].GroupVersion.String(), Kind: kind}) {
				t.Error("config/samples has none")
			}
			if pages[singular+".md"] == nil {
				t.Errorf("there is no docs/%s.md", singular)
			}
			if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return v.Name == Definitions[i].GroupVersion.Version && v.Served && v.Subresources != nil && v.Subresources.Status != nil
			}) {
				t.Errorf("version %s is not served, or has no status", Definitions[i].GroupVersion.Version)
			}
			file := singular + "_user_roles.yaml"
			if len(roles[file]) != 2 {
				t.Fatalf("config/rbac/%s has %d roles, want 2", file, len(roles[file]))
			}
			for _, text := range roles[file] {
				role := parse[rbacv1.ClusterRole](t, file, text)
				if want := []string{crd.Spec.Names.Plural}; !slices.Equal(role.Rules[0].Resources, want) {
					t.Errorf("role %s is for %v, want %v", role.Name, role.Rules[0].Resources, want)
				}
			}
		})
	}
}
