package v1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func discover(t *testing.T) *discovery.DiscoveryClient {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(testplane.Config())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestShortNamesAndCategories(t *testing.T) {
	t.Parallel()
	list, err := discover(t).ServerResourcesForGroupVersion(storagev1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for resource, short := range map[string]string{"storagebuckets": "sbucket", "bucketproviderconfigs": "bpc"} {
		i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
		if i < 0 {
			t.Errorf("%s are not served", resource)
			continue
		}
		served := list.APIResources[i]
		if !slices.Equal(served.ShortNames, []string{short}) || !served.Namespaced {
			t.Errorf("%s: short names %v, namespaced %t", resource, served.ShortNames, served.Namespaced)
		}
		if !slices.Equal(served.Categories, []string{"storage", "bucketoperator"}) {
			t.Errorf("%s: categories %v", resource, served.Categories)
		}
	}
}

func TestColumnsShowWhatTheObjectHolds(t *testing.T) {
	t.Parallel()
	namespace := testplane.Namespace(t)
	c, bucket := admin(t), testkit.Bucket("media-assets", testkit.InNamespace(namespace))
	config := &storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "acme", Namespace: namespace},
		Spec:       storagev1.BucketProviderConfigSpec{Endpoint: "https://buckets.example.com"},
	}
	for _, object := range []client.Object{bucket, config} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	bucket.Status = fullStatus()
	bucket.Status.SizeGB = 128 // what the provider has made of 100
	config.Status = storagev1.BucketProviderConfigStatus{ObservedGeneration: 1, Conditions: []metav1.Condition{ready()}}
	for _, object := range []client.Object{bucket, config} {
		if err := c.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for resource, want := range map[string]map[string]any{
		"storagebuckets": {
			"Name": "media-assets", "Ready": "True", "Reason": "Available", "Phase": "Active", "ID": "bucket-1", "Region": "us-east-1",
			"SizeGB": float64(128), "Provider": "acme", "Endpoint": "https://buckets.example.com", "Message": "bucket bucket-1 is active",
		},
		"bucketproviderconfigs": {
			"Name": "acme", "Ready": "True", "Reason": "Available", "Type": "HTTP", "Endpoint": "https://buckets.example.com",
			"Message": "bucket bucket-1 is active",
		},
	} {
		got := table(t, namespace, resource)
		if age, ok := got["Age"].(string); !ok || age == "" {
			t.Errorf("%s: Age is %v", resource, got["Age"])
		}
		delete(got, "Age")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("columns of %s (-want +got):\n%s", resource, diff)
		}
	}
}

// table is the one row that kubectl get shows of a resource.
func table(t *testing.T, namespace, resource string) map[string]any {
	t.Helper()
	body, err := discover(t).RESTClient().Get().
		AbsPath("apis", storagev1.GroupName, "v1", "namespaces", namespace, resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(t.Context()).Raw()
	if err != nil {
		t.Fatalf("asking for a table of %s: %v", resource, err)
	}
	var rows metav1.Table
	if err := json.Unmarshal(body, &rows); err != nil {
		t.Fatalf("reading the table of %s: %v", resource, err)
	}
	if len(rows.Rows) != 1 {
		t.Fatalf("the table of %s has %d rows, want 1", resource, len(rows.Rows))
	}
	cells := map[string]any{}
	for i, column := range rows.ColumnDefinitions {
		cells[column.Name] = rows.Rows[0].Cells[i]
	}
	return cells
}

// TestKubectlExplainKnowsEveryField reads the document that kubectl explain reads.
func TestKubectlExplainKnowsEveryField(t *testing.T) {
	t.Parallel()
	paths, err := discover(t).OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	group, ok := paths["apis/"+storagev1.GroupVersion.String()]
	if !ok {
		t.Fatal("the API server publishes no document of the group")
	}
	raw, err := group.Schema("application/json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Components struct {
			Schemas map[string]*apiextensionsv1.JSONSchemaProps `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatalf("reading the document: %v", err)
	}
	for _, resource := range resources {
		crd := definition(t, resource)
		published := map[string]string{}
		for name, schema := range document.Components.Schemas {
			if strings.HasSuffix(name, ".v1."+crd.Spec.Names.Kind) {
				walk(schema, "", func(path, _ string, field *apiextensionsv1.JSONSchemaProps) { published[path] = field.Description })
			}
		}
		walk(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path, _ string, field *apiextensionsv1.JSONSchemaProps) {
			if !kubernetesOwn[path] && published[path] != field.Description {
				t.Errorf("kubectl explain says %q of %s %s, want %q", published[path], resource, path, field.Description)
			}
		})
	}
}
