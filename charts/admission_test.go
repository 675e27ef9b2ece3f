package charts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// warnings collects those that the API server gives.
type warnings struct {
	mu   sync.Mutex
	seen []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// server is a client of the API server that keeps its warnings.
type server struct {
	config   *rest.Config
	client   kubernetes.Interface
	warnings *warnings
}

func newServer(t *testing.T, config *rest.Config) server {
	t.Helper()
	s := server{config: rest.CopyConfig(config), warnings: &warnings{}}
	s.config.WarningHandler = s.warnings
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	return s
}

// restrict has a namespace enforce the restricted Pod Security Standard.
func (s server) restrict(t *testing.T, namespace string) {
	t.Helper()
	const labels = `{"metadata":{"labels":{
		"pod-security.kubernetes.io/enforce":"restricted",
		"pod-security.kubernetes.io/warn":"restricted"}}}`
	_, err := s.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(labels), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// tryApply applies the objects server-side, and stores nothing. The API server
// refuses unknown fields, and what its own validation finds.
func (s server) tryApply(ctx context.Context, all objects) error {
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(s.config, client)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(s.config, client)
	if err != nil {
		return err
	}
	for _, key := range all.keys() {
		object := all[key]
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("finding the resource of %s: %w", key, err)
		}
		resource := dynamic.ResourceInterface(dynamicClient.Resource(mapping.Resource))
		if namespace := object.GetNamespace(); namespace != "" {
			resource = dynamicClient.Resource(mapping.Resource).Namespace(namespace)
		}
		_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{
			FieldManager: "charts-test", Force: true, DryRun: []string{metav1.DryRunAll},
		})
		if err != nil {
			return fmt.Errorf("applying %s: %w", key, err)
		}
	}
	return nil
}

// tryPod creates a pod from the Deployment's template, and stores nothing.
func (s server) tryPod(ctx context.Context, namespace string, template corev1.PodTemplateSpec) error {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.GenerateName = "try-"
	_, err := s.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// prometheusOperator is the group of kinds that this API server does not have.
const prometheusOperator = "monitoring.coreos.com"

func TestTheAPIServerTakesEveryObjectWithoutAWarning(t *testing.T) {
	t.Parallel()
	for name, file := range valuesFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, testplane.Config())
			home, work := testplane.Namespace(t), testplane.Namespace(t)
			s.restrict(t, home)
			args := []string{"template", "bucketoperator", chart, "--namespace=" + home, "--values=" + file}
			if name != "default" {
				args = append(args, "--set=namespaces={"+work+"}")
			}
			all := parse(t, mustHelm(t, args...))
			maps.DeleteFunc(all, func(_ string, object *unstructured.Unstructured) bool {
				return object.GroupVersionKind().Group == prometheusOperator // test/observability proves these
			})
			if err := s.tryApply(t.Context(), all); err != nil {
				t.Error(err)
			}
			if got := s.warnings.list(); len(got) > 0 {
				t.Errorf("the API server warns: %s", strings.Join(got, "; "))
			}
		})
	}
}

func TestThePodsKeepToTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	for name, file := range valuesFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, testplane.Config())
			namespace := testplane.Namespace(t)
			s.restrict(t, namespace)
			template := parse(t, mustHelm(t, "template", "bucketoperator", chart, "--namespace="+namespace, "--values="+file)).deployment(t).Spec.Template
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: template.Spec.ServiceAccountName}}
			if _, err := s.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := s.tryPod(t.Context(), namespace, template); err != nil {
				t.Errorf("the pod is refused: %v", err)
			}
			if got := s.warnings.list(); len(got) > 0 {
				t.Errorf("the API server warns: %s", strings.Join(got, "; "))
			}

			// The namespace is as strict as it should be: less is refused.
			template.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = new(true)
			if err := s.tryPod(t.Context(), namespace, template); err == nil || !strings.Contains(err.Error(), "restricted") {
				t.Errorf("a pod that may gain privileges: got error %v, want a refusal", err)
			}
		})
	}
}

func TestAnUnknownFieldIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, testplane.Config())
	namespace := testplane.Namespace(t)
	all := parse(t, mustHelm(t, "template", "bucketoperator", chart, "--namespace="+namespace, "--set=crds.install=false"))
	for _, object := range all {
		if object.GetKind() == "Deployment" {
			object.Object["spec"].(map[string]any)["replica"] = int64(2)
		}
	}
	if err := s.tryApply(t.Context(), all); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("got error %v, want one that names the field", err)
	}
}
