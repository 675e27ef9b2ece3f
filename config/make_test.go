package config

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster"
)

// emptyCluster is one without CRDs.
type emptyCluster struct {
	client.Client
	env []string
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
	kubectl := cluster.Assets().Kubectl
	if kubectl == "" {
		t.Skipf("this tests calls of kubectl, and %s has none", cluster.Assets().Dir)
	}
	objects, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, add := range []func() error{
		func() error { return storagev1.AddToScheme(objects.Scheme()) },
		func() error { return apiextensionsv1.AddToScheme(objects.Scheme()) },
	} {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	return emptyCluster{Client: objects, env: append(os.Environ(),
		"KUBECONFIG="+cluster.Kubeconfig(), "KUBECTL="+kubectl,
		"MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=")} // a make that calls these tests would hand its own flags down
}

// make calls a target of the Makefile for this cluster.
func (c emptyCluster) make(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "make", args...)
	command.Dir, command.Env = root, c.env
	text, err := command.CombinedOutput()
	return string(text), err
}

func (c emptyCluster) mustMake(t *testing.T, args ...string) {
	t.Helper()
	if output, err := c.make(t, args...); err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// expectRefusal wants a target to fail for the reason given.
func (c emptyCluster) expectRefusal(t *testing.T, target, reason string) {
	t.Helper()
	if output, err := c.make(t, target); err == nil || !strings.Contains(output, reason) {
		t.Errorf("make %s: got error %v, want a refusal that says %q:\n%s", target, err, reason, output)
	}
}

// expect wants all of the objects to be there, or none.
func (c emptyCluster) expect(t *testing.T, there bool, objects []client.Object) {
	t.Helper()
	for _, object := range objects {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if (err == nil) != there {
			t.Errorf("%T %s/%s: there: %t, want %t", object, object.GetNamespace(), object.GetName(), err == nil, there)
		}
	}
}

// createBucket creates a StorageBucket as soon as its kind is served.
func (c emptyCluster) createBucket(t *testing.T) *storagev1.StorageBucket {
	t.Helper()
	bucket := testkit.Bucket("media", testkit.InNamespace(metav1.NamespaceDefault))
	testkit.Eventually(t, func(ctx context.Context) string {
		if err := c.Create(ctx, bucket); err != nil {
			return "creating a bucket: " + err.Error()
		}
		return ""
	})
	return bucket
}

// without are the objects less those of a type.
func without[T client.Object](objects []client.Object) []client.Object {
	var some []client.Object
	for _, object := range objects {
		if _, is := object.(T); !is {
			some = append(some, object)
		}
	}
	return some
}

func TestMakeInstallsAndRemovesTheOperator(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Fatalf("the project needs make: %v", err)
	}
	c := startCluster(t)
	all := build(t, "default")
	crds, others := build(t, "crd"), without[*apiextensionsv1.CustomResourceDefinition](all)

	c.mustMake(t, "install")
	c.expect(t, true, crds)
	c.expect(t, false, others)

	const image = "registry.example.org/team/operator:v9"
	c.mustMake(t, "deploy", "IMG="+image)
	c.expect(t, true, all)
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(the[*appsv1.Deployment](t, all)), deployment); err != nil {
		t.Fatal(err)
	}
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image {
		t.Errorf("the image is %s, want %s", got, image)
	}

	bucket := c.createBucket(t)
	for _, target := range []string{"undeploy", "uninstall"} {
		c.expectRefusal(t, target, "There are still storagebuckets")
	}
	c.expect(t, true, all)
	if err := c.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}

	c.mustMake(t, "undeploy")
	c.expect(t, false, others)
	c.expect(t, true, crds)
	c.mustMake(t, "uninstall")
	c.expect(t, false, crds)
	for _, target := range []string{"undeploy", "uninstall"} {
		c.mustMake(t, target) // there being nothing is fine
	}

	c.env = append(c.env, "KUBECONFIG=/nonexistent")
	for _, target := range []string{"install", "deploy", "undeploy", "uninstall"} {
		if output, err := c.make(t, target); err == nil {
			t.Errorf("make %s: no error without a cluster:\n%s", target, output)
		}
	}
}
