package charts

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// objects are manifests by kind, namespace and name, such as
// "Role team-a/bucketoperator-manager-role".
type objects map[string]*unstructured.Unstructured

func parse(t *testing.T, manifests string) objects {
	t.Helper()
	all := objects{}
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading manifests: %v\n%s", err, manifests)
		}
		if len(object.Object) == 0 {
			continue
		}
		if all[key(object)] != nil {
			t.Fatalf("there are two manifests of %s", key(object))
		}
		all[key(object)] = object
	}
}

func key(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

func (o objects) keys() []string { return slices.Sorted(maps.Keys(o)) }

// plain are the objects without what is Helm's own: labels that tell of the
// chart, and its note to keep what must not go.
func (o objects) plain() map[string]map[string]any {
	all := map[string]map[string]any{}
	for key, object := range o {
		object = object.DeepCopy()
		object.SetLabels(withoutHelm(object.GetLabels()))
		object.SetAnnotations(withoutHelm(object.GetAnnotations()))
		all[key] = object.Object
	}
	return all
}

func withoutHelm(pairs map[string]string) map[string]string {
	pairs = maps.Clone(pairs)
	maps.DeleteFunc(pairs, func(key, _ string) bool {
		return key == "app.kubernetes.io/managed-by" || strings.HasPrefix(key, "helm.sh/") || strings.HasPrefix(key, "meta.helm.sh/")
	})
	if len(pairs) == 0 {
		return nil
	}
	return pairs
}

// deployment is the one Deployment.
func (o objects) deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	for _, object := range o {
		if object.GetKind() == "Deployment" {
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, deployment, true); err != nil {
				t.Fatal(err)
			}
			return deployment
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

// clusterWide are the objects that are in no namespace.
func (o objects) clusterWide() []string {
	return slices.DeleteFunc(o.keys(), func(key string) bool { return o[key].GetNamespace() != metav1.NamespaceNone })
}
