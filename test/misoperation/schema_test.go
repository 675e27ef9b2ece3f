package misoperation_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

type schema = apiextensionsv1.JSONSchemaProps

// schemaOf is the schema that the API server has of a resource.
func schemaOf(t *testing.T, resource string) *schema {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testplane.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: resource + "." + storagev1.GroupName}, crd); err != nil {
		t.Fatalf("reading the schema of %s: %v", resource, err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits a node and all below it, in the order of their names.
func walk(node schema, path string, visit func(path string, node schema)) {
	visit(path, node)
	if node.Items != nil && node.Items.Schema != nil {
		walk(*node.Items.Schema, path+"[]", visit)
	}
	for _, name := range sortedKeys(node.Properties) {
		walk(node.Properties[name], strings.TrimPrefix(path+"."+name, "."), visit)
	}
}

// leaves are the paths of the fields that hold values, below spec and status.
func leaves(t *testing.T, resource string) []string {
	t.Helper()
	var found []string
	root := schemaOf(t, resource)
	for _, part := range []string{"spec", "status"} {
		walk(root.Properties[part], part, func(path string, node schema) {
			if len(node.Properties) == 0 && node.Items == nil {
				found = append(found, path)
			}
		})
	}
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
