package v1_test

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// resources are the kinds' names in URLs.
var resources = []string{"storagebuckets", "bucketproviderconfigs"}

// kubernetesOwn are the fields that every kind has.
var kubernetesOwn = map[string]bool{"apiVersion": true, "kind": true, "metadata": true}

// definition is a CustomResourceDefinition as the API server has it.
func definition(t *testing.T, resource string) *apiextensionsv1.CustomResourceDefinition {
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
		t.Fatalf("reading the definition: %v", err)
	}
	return crd
}

// walk visits every field below a schema, with its dotted path.
func walk(schema *apiextensionsv1.JSONSchemaProps, path string, visit func(path, name string, field *apiextensionsv1.JSONSchemaProps)) {
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(schema.Items.Schema, path+"[]", visit)
	}
	for name, field := range schema.Properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		visit(at, name, &field)
		walk(&field, at, visit)
	}
}

func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	for _, resource := range resources {
		schema := definition(t, resource).Spec.Versions[0].Schema.OpenAPIV3Schema
		if schema.Description == "" {
			t.Errorf("%s have no description", resource)
		}
		walk(schema, "", func(path, name string, field *apiextensionsv1.JSONSchemaProps) {
			if kubernetesOwn[path] {
				return
			}
			if !strings.HasPrefix(field.Description, name+" ") {
				t.Errorf("the description of %s %s does not begin with its name: %q", resource, path, field.Description)
			}
		})
	}
}

// TestExplainTellsBoundsDefaultsAndWhatFollows looks for what a user of kubectl
// explain, which shows no minimum and no default, has to be told in words.
func TestExplainTellsBoundsDefaultsAndWhatFollows(t *testing.T) {
	t.Parallel()
	words := map[string][]string{
		"spec.sizeGB": {
			"at least 1", storagev1.ConditionSizeApplied, storagev1.ReasonResizeRefused, storagev1.ReasonNotSupported, storagev1.ReasonSizeDiffers,
		},
		"spec.deletionPolicy": {"Delete (the default)", "Retain"},
	}
	walk(definition(t, "storagebuckets").Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path, _ string, field *apiextensionsv1.JSONSchemaProps) {
		for _, word := range words[path] {
			if !strings.Contains(field.Description, word) {
				t.Errorf("the description of %s does not tell %q: %q", path, word, field.Description)
			}
		}
		delete(words, path)
	})
	if len(words) > 0 {
		t.Errorf("there are no fields of %v", words)
	}
}

func TestEveryFieldIsBounded(t *testing.T) {
	t.Parallel()
	for _, resource := range resources {
		walk(definition(t, resource).Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path, _ string, field *apiextensionsv1.JSONSchemaProps) {
			if kubernetesOwn[path] {
				return
			}
			switch field.Type {
			case "string":
				if field.MaxLength == nil && len(field.Enum) == 0 && field.Format != "date-time" {
					t.Errorf("%s %s is a string without bound", resource, path)
				}
			case "integer":
				if field.Minimum == nil || field.Format == "" {
					t.Errorf("%s %s is a number without bounds", resource, path)
				}
			case "array":
				if field.MaxItems == nil || field.XListType == nil {
					t.Errorf("%s %s is a list without bound or listType", resource, path)
				}
			}
		})
	}
}

// TestRulesAreCheap keeps each CEL rule, at the largest object that it may
// meet, below a tenth of what the API server allows.
func TestRulesAreCheap(t *testing.T) {
	t.Parallel()
	for _, resource := range resources {
		internal := &apiextensions.JSONSchemaProps{}
		schema := definition(t, resource).Spec.Versions[0].Schema.OpenAPIV3Schema
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, internal, nil); err != nil {
			t.Fatalf("converting the schema of %s: %v", resource, err)
		}
		if rules := checkCosts(t, resource, internal, validation.RootCELContext(internal)); rules == 0 {
			t.Errorf("no rules of %s were found", resource)
		}
	}
}

func checkCosts(t *testing.T, path string, schema *apiextensions.JSONSchemaProps, at *validation.CELSchemaContext) (rules int) {
	t.Helper()
	if len(schema.XValidations) > 0 {
		info, err := at.TypeInfo()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
		compiled, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, env, cel.NewExpressionsEnvLoader())
		if err != nil {
			t.Fatalf("compiling the rules of %s: %v", path, err)
		}
		for i, rule := range compiled {
			rules++
			times := rule.MaxCardinality
			if at.MaxCardinality != nil {
				times = *at.MaxCardinality
			}
			if rule.Error != nil {
				t.Errorf("rule %d of %s: %v", i, path, rule.Error)
			}
			if cost := rule.MaxCost * times; cost*10 > validation.StaticEstimatedCostLimit {
				t.Errorf("rule %d of %s costs %d, the limit is %d", i, path, cost, validation.StaticEstimatedCostLimit)
			}
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		rules += checkCosts(t, path+"[]", schema.Items.Schema, at.ChildItemsContext(schema.Items.Schema))
	}
	for name, field := range schema.Properties {
		rules += checkCosts(t, path+"."+name, &field, at.ChildPropertyContext(&field, name))
	}
	return rules
}
