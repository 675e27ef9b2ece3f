package charts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster"
)

// emptyCluster is one that has no CRDs yet, for tests that install them.
type emptyCluster struct {
	server
	objects    client.Client
	kubeconfig string
}

func startCluster(t *testing.T) emptyCluster {
	t.Helper()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := storagev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return emptyCluster{server: newServer(t, cluster.Config()), objects: objects, kubeconfig: cluster.Kubeconfig()}
}

// helm calls helm for this cluster.
func (c emptyCluster) helm(t *testing.T, args ...string) (output, complaints string, err error) {
	t.Helper()
	return helm(t, append(args, "--kubeconfig="+c.kubeconfig)...)
}

func (c emptyCluster) mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	return mustHelm(t, append(args, "--kubeconfig="+c.kubeconfig)...)
}

// live reads the objects from the cluster; those that are not there are missing.
func (c emptyCluster) live(t *testing.T, wanted objects) objects {
	t.Helper()
	live := objects{}
	for key, object := range wanted {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(object.GroupVersionKind())
		err := c.objects.Get(t.Context(), client.ObjectKeyFromObject(object), found)
		if err == nil {
			live[key] = found
		} else if !apierrors.IsNotFound(err) {
			t.Fatalf("reading %s: %v", key, err)
		}
	}
	return live
}

// generations tell which objects were written to: for those whose kind has no
// generation, the version does.
func generations(all objects) map[string]string {
	found := map[string]string{}
	for key, object := range all {
		if generation := object.GetGeneration(); generation != 0 {
			found[key] = fmt.Sprintf("generation %d", generation)
		} else {
			found[key] = "version " + object.GetResourceVersion()
		}
	}
	return found
}

func (c emptyCluster) makeNamespaces(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// makeBucket creates a StorageBucket as soon as its kind is served.
func (c emptyCluster) makeBucket(t *testing.T, namespace string) {
	t.Helper()
	bucket := testkit.Bucket("media", testkit.InNamespace(namespace))
	testkit.Eventually(t, func(ctx context.Context) string {
		if err := c.objects.Create(ctx, bucket); err != nil {
			return "creating a bucket: " + err.Error()
		}
		return ""
	})
}

func (c emptyCluster) bucketExists(t *testing.T, namespace string) bool {
	t.Helper()
	err := c.objects.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "media"}, &storagev1.StorageBucket{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// mayReadSecrets asks for the operator's ServiceAccount.
func (c emptyCluster) mayReadSecrets(t *testing.T, namespace string) bool {
	t.Helper()
	review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:bucketoperator-system:bucketoperator-controller-manager",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "list", Resource: "secrets"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

const inSystem = "--namespace=bucketoperator-system"

func crdsOf(all objects) []string {
	return slices.DeleteFunc(all.keys(), func(key string) bool { return !strings.HasPrefix(key, "CustomResourceDefinition ") })
}

// The steps of a release's life build on one another.
func TestAReleaseIsInstalledUpgradedAndUninstalled(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.makeNamespaces(t, "team-a", "team-b")
	wanted := render(t)

	notes := c.mustHelm(t, "install", "bucketoperator", chart, inSystem, "--create-namespace")
	if diff := cmp.Diff(wanted.keys(), c.live(t, wanted).keys()); diff != "" {
		t.Fatalf("objects after the installation (-want +got):\n%s", diff)
	}
	for _, part := range []string{"works in all namespaces", "Before you uninstall it, delete all of those", "Uninstalling leaves the CRDs"} {
		if !contains(notes, part) {
			t.Errorf("the notes do not say %q:\n%s", part, notes)
		}
	}
	c.makeBucket(t, "team-a")

	before := generations(c.live(t, wanted))
	c.mustHelm(t, "upgrade", "bucketoperator", chart, inSystem, "--set=replicas=3")
	after := generations(c.live(t, wanted))
	maps.DeleteFunc(after, func(key, generation string) bool { return before[key] == generation })
	if got, want := slices.Sorted(maps.Keys(after)), []string{"Deployment bucketoperator-system/bucketoperator-controller-manager"}; !cmp.Equal(got, want) {
		t.Errorf("an upgrade to three replicas changed %v, want %v", got, want)
	}
	if got := *c.live(t, wanted).deployment(t).Spec.Replicas; got != 3 {
		t.Errorf("there are %d replicas, want 3", got)
	}

	if !c.mayReadSecrets(t, "team-b") || !c.mayReadSecrets(t, metav1.NamespaceAll) {
		t.Error("without namespaces, the operator may not read Secrets everywhere")
	}
	notes = c.mustHelm(t, "upgrade", "bucketoperator", chart, inSystem, "--set=namespaces={team-a}")
	if !contains(notes, "works in the namespaces team-a") {
		t.Errorf("the notes do not name the namespace:\n%s", notes)
	}
	narrow := render(t, "--set=namespaces={team-a}")
	if diff := cmp.Diff(narrow.keys(), c.live(t, narrow).keys()); diff != "" {
		t.Errorf("objects after the upgrade to one namespace (-want +got):\n%s", diff)
	}
	if !c.mayReadSecrets(t, "team-a") || c.mayReadSecrets(t, "team-b") || c.mayReadSecrets(t, metav1.NamespaceAll) {
		t.Error("the operator may read Secrets elsewhere than in the one namespace, or not there")
	}

	output := c.mustHelm(t, "uninstall", "bucketoperator", inSystem)
	if !contains(output, "kept due to the resource policy") {
		t.Errorf("helm does not say that it keeps the CRDs:\n%s", output)
	}
	maps.Copy(narrow, wanted)
	if diff := cmp.Diff(crdsOf(wanted), c.live(t, narrow).keys()); diff != "" {
		t.Errorf("objects after the uninstallation (-want +got):\n%s", diff)
	}
	if !c.bucketExists(t, "team-a") {
		t.Error("the bucket is gone")
	}

	c.mustHelm(t, "install", "bucketoperator", chart, inSystem)
	if diff := cmp.Diff(wanted.keys(), c.live(t, wanted).keys()); diff != "" {
		t.Errorf("objects after another installation (-want +got):\n%s", diff)
	}
	if !c.bucketExists(t, "team-a") {
		t.Error("the bucket is gone")
	}
}

// CRDs that something else installed are that one's, unless the user says so.
func TestCRDsOfAnotherInstallationAreNotTakenUnasked(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.mustHelm(t, "install", "bucketoperator-one", chart, "--namespace=one", "--create-namespace")
	install := []string{"install", "bucketoperator-two", chart, "--namespace=two", "--create-namespace"}
	if _, complaints, err := c.helm(t, install...); err == nil || !contains(complaints, "invalid ownership metadata") {
		t.Fatalf("a second release with CRDs: got %v, %s", err, complaints)
	}
	c.mustHelm(t, append(install, "--set=crds.install=false")...)
	c.mustHelm(t, "uninstall", "bucketoperator-one", "--namespace=one")
	c.mustHelm(t, "upgrade", "bucketoperator-two", chart, "--namespace=two", "--set=crds.install=true", "--take-ownership")
	wanted := parse(t, mustHelm(t, "template", "bucketoperator-two", chart, "--namespace=two"))
	for _, key := range crdsOf(wanted) {
		if got := c.live(t, wanted)[key].GetAnnotations()["meta.helm.sh/release-name"]; got != "bucketoperator-two" {
			t.Errorf("%s belongs to release %q", key, got)
		}
	}
}
