package misoperation_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster"
)

// TestTheDocumentedWayOutWithoutAnOperator runs the commands of
// docs/troubleshooting.md for a cluster whose operator was removed too early.
// They concern all namespaces, so the test has a cluster of its own.
func TestTheDocumentedWayOutWithoutAnOperator(t *testing.T) {
	t.Parallel()
	crds, err := localcluster.ProjectCRDs()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Progress: os.Stderr, CRDs: []string{crds}})
	if err != nil {
		t.Fatalf("starting a cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	c, err := client.New(cluster.Config(), client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	stuck := terminating(t, c)

	script := commandsOf(t, "troubleshooting.md", "The operator is gone, and objects stay Terminating")
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "PATH="+filepath.Dir(cluster.Assets().Kubectl)+":"+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands failed: %v\n%s", err, output)
	}
	if !strings.Contains(string(output), "bucket-482913") {
		t.Errorf("the commands do not show what is left at the provider:\n%s", output)
	}
	for _, object := range stuck {
		testkit.Eventually(t, func(ctx context.Context) string {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err == nil {
				return fmt.Sprintf("%T %s is still there", object, object.GetName())
			} else if client.IgnoreNotFound(err) != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// terminating makes objects as the operator leaves them, and deletes them.
func terminating(t *testing.T, c client.Client) []client.Object {
	t.Helper()
	named := func(name, finalizer string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{finalizer}}
	}
	bucket := &storagev1.StorageBucket{
		ObjectMeta: named("photos", storagev1.BucketFinalizer),
		Spec:       storagev1.StorageBucketSpec{Region: "us-east-1", SizeGB: 1},
	}
	objects := []client.Object{
		bucket,
		&storagev1.BucketProviderConfig{
			ObjectMeta: named("acme", storagev1.ConfigFinalizer),
			Spec:       storagev1.BucketProviderConfigSpec{Endpoint: "https://buckets.example.com"},
		},
		&corev1.Secret{ObjectMeta: named("provider-key", storagev1.ConfigFinalizer)},
	}
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %T: %v", object, err)
		}
	}
	bucket.Status.ID = "bucket-482913"
	if err := c.Status().Update(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := c.Delete(t.Context(), object); err != nil {
			t.Fatalf("deleting %T: %v", object, err)
		}
	}
	return objects
}

// commandsOf are the shell commands in a section of a page of the docs.
func commandsOf(t *testing.T, page, section string) string {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(rest)
	if !found || block == nil {
		t.Fatalf("%s has no commands under %q", page, section)
	}
	return block[1]
}
