package config

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/localcluster"
)

// build is what kustomize makes of a folder, unknown fields being an error.
func build(t *testing.T, folder string) []client.Object {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "kustomize", "build", filepath.Join("config", folder))
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v", folder, err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []client.Object
	for documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(output))); ; {
		document := make([]byte, len(output))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document[:n], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object.(client.Object))
	}
}

// of are the objects of a type.
func of[T client.Object](objects []client.Object) []T {
	var some []T
	for _, object := range objects {
		if object, ok := object.(T); ok {
			some = append(some, object)
		}
	}
	return some
}

// the is the one object of a type.
func the[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	some := of[T](objects)
	if len(some) != 1 {
		t.Fatalf("there are %d objects of type %T, want 1", len(some), *new(T))
	}
	return some[0]
}

// forBoth tests the installation for all namespaces, and the one for some.
func forBoth(t *testing.T, test func(t *testing.T, objects []client.Object)) {
	t.Parallel()
	for _, folder := range []string{"default", "namespaced"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			test(t, build(t, folder))
		})
	}
}

func TestCRDsAndNamespaceComeFirst(t *testing.T) {
	forBoth(t, func(t *testing.T, objects []client.Object) {
		crds := 0
		for i, object := range objects {
			switch object.(type) {
			case *apiextensionsv1.CustomResourceDefinition, *corev1.Namespace:
				if crds++; crds != i+1 {
					t.Errorf("%s comes after others", object.GetName())
				}
			}
		}
		if crds < 3 {
			t.Errorf("there are %d namespaces and CRDs", crds)
		}
	})
}

func TestTwoReplicasOfWhichOneLeadsOnDifferentNodes(t *testing.T) {
	forBoth(t, func(t *testing.T, objects []client.Object) {
		spec := the[*appsv1.Deployment](t, objects).Spec
		if *spec.Replicas != 2 || !slices.Contains(spec.Template.Spec.Containers[0].Args, "--leader-elect") {
			t.Errorf("replicas: %d, arguments: %v", *spec.Replicas, spec.Template.Spec.Containers[0].Args)
		}
		want := []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: spec.Selector,
		}}
		if diff := cmp.Diff(want, spec.Template.Spec.TopologySpreadConstraints); diff != "" {
			t.Errorf("spread (-want +got):\n%s", diff)
		}
	})
}

// The chart's tests have an API server judge the pods. This says what is beyond
// the standard.
func TestContainersAreRestricted(t *testing.T) {
	forBoth(t, func(t *testing.T, objects []client.Object) {
		namespace := the[*corev1.Namespace](t, objects)
		for _, mode := range []string{"enforce", "audit", "warn"} {
			if got := namespace.Labels["pod-security.kubernetes.io/"+mode]; got != "restricted" {
				t.Errorf("the namespace's level to %s is %q", mode, got)
			}
		}
		pod := the[*appsv1.Deployment](t, objects).Spec.Template.Spec
		for _, container := range pod.Containers {
			if security := container.SecurityContext; security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
				t.Errorf("container %s may write to its root", container.Name)
			}
			if container.LivenessProbe == nil || container.ReadinessProbe == nil {
				t.Errorf("container %s lacks a probe", container.Name)
			}
			for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if request := container.Resources.Requests[resource]; request.IsZero() {
					t.Errorf("container %s requests no %s", container.Name, resource)
				}
			}
			if container.Resources.Limits.Memory().IsZero() {
				t.Errorf("container %s has no limit on memory", container.Name)
			}
		}
	})
}

func TestSelectorsFindTheOperatorsPods(t *testing.T) {
	forBoth(t, func(t *testing.T, objects []client.Object) {
		deployment := the[*appsv1.Deployment](t, objects)
		budget := the[*policyv1.PodDisruptionBudget](t, objects)
		policy := the[*networkingv1.NetworkPolicy](t, objects)
		service := the[*corev1.Service](t, objects)
		for what, selector := range map[string]*metav1.LabelSelector{
			"Deployment":          deployment.Spec.Selector,
			"PodDisruptionBudget": budget.Spec.Selector,
			"NetworkPolicy":       &policy.Spec.PodSelector,
			"Service":             {MatchLabels: service.Spec.Selector},
		} {
			found, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil || found.Empty() || !found.Matches(labels.Set(deployment.Spec.Template.Labels)) {
				t.Errorf("the selector of the %s is %v, %v", what, found, err)
			}
		}
		if budget.Spec.MaxUnavailable.IntValue() != 1 {
			t.Errorf("the budget is %v", budget.Spec)
		}
		if !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) || !slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			t.Errorf("the NetworkPolicy is of types %v", policy.Spec.PolicyTypes)
		}
	})
}

func TestNoRuleHasAWildcard(t *testing.T) {
	forBoth(t, func(t *testing.T, objects []client.Object) {
		rules := map[string][]rbacv1.PolicyRule{}
		for _, role := range of[*rbacv1.ClusterRole](objects) {
			rules[role.Name] = role.Rules
		}
		for _, role := range of[*rbacv1.Role](objects) {
			rules[role.Namespace+"/"+role.Name] = role.Rules
		}
		if len(rules) < 3 {
			t.Fatalf("there are %d roles", len(rules))
		}
		for name, rules := range rules {
			for _, rule := range rules {
				if strings.Contains(rule.String(), "*") {
					t.Errorf("%s has a wildcard: %v", name, rule)
				}
			}
		}
	})
}

func TestInSomeNamespacesTheRulesAreTheSame(t *testing.T) {
	t.Parallel()
	var want []rbacv1.PolicyRule
	for _, role := range of[*rbacv1.ClusterRole](build(t, "default")) {
		if role.Name == "bucketoperator-manager-role" {
			want = role.Rules
		}
	}
	objects := build(t, "namespaced")
	for _, role := range of[*rbacv1.ClusterRole](objects) {
		if role.Name == "bucketoperator-manager-role" {
			t.Error("there is a ClusterRole, too")
		}
	}
	var namespaces []string
	for _, role := range of[*rbacv1.Role](objects) {
		if role.Name != "bucketoperator-manager-role" {
			continue
		}
		namespaces = append(namespaces, role.Namespace)
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			t.Errorf("rules of the ClusterRole (-) and of the Role in %s (+):\n%s", role.Namespace, diff)
		}
	}
	flag := "--namespaces=" + strings.Join(namespaces, ",")
	if args := the[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args; len(namespaces) == 0 || !slices.Contains(args, flag) {
		t.Errorf("the arguments are %v, want %s among them", args, flag)
	}
}
