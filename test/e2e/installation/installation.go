// Package installation puts the operator, as users install it, and a bucket
// provider onto the cluster of an end-to-end test, and takes them off again.
package installation

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// Names of config/.
const (
	// Namespace is the operator's.
	Namespace = "bucketoperator-system"
	// Deployment is the operator's, and the name of its ServiceAccount.
	Deployment = "bucketoperator-controller-manager"
	// Container is that of the operator in its pods.
	Container = "manager"
	// Lease is what the leader holds.
	Lease = "bucketoperator-leader"
	// Image is the one that config/manager names.
	Image = "registry.example.com/bucketoperator:v0.1.0"
)

// User is who the operator is to the API server.
const User = "system:serviceaccount:" + Namespace + ":" + Deployment

// imageEnv names another image of the operator, for clusters that pull theirs.
const imageEnv = "IMG"

// Client is a client of the cluster that knows the operator's kinds.
func Client(t testing.TB) client.Client {
	t.Helper()
	c, err := client.New(testnode.Config(), client.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return c
}

// File is the path of a file of the checkout.
func File(t testing.TB, elements ...string) string {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, elements...)...)
}

// Install applies config/default and waits until the operator is available. At
// the test's end, what is left of it is removed, see Remove.
func Install(t testing.TB) {
	t.Helper()
	Apply(t, Render(t, "default"))
	t.Cleanup(func() { Remove(t) })
	WaitAvailable(t, Namespace, Deployment)
}

// ImageInUse is the operator's image: the one that imageEnv names, if any.
func ImageInUse() string { return cmp.Or(os.Getenv(imageEnv), Image) }

// Render renders a folder of config/, with the image that imageEnv names.
func Render(t testing.TB, overlay string) string {
	t.Helper()
	manifests := testnode.Kubectl(t, "kustomize", File(t, "config", overlay))
	return strings.ReplaceAll(manifests, Image, ImageInUse())
}

// Apply applies manifests as `make deploy` does.
func Apply(t testing.TB, manifests string) {
	t.Helper()
	if _, err := Kubectl(t.Context(), manifests, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// removeTimeout bounds Remove.
const removeTimeout = 3 * time.Minute

// Remove removes the operator and its CRDs, and all objects of its kinds with
// them, whatever has become of the operator: a test that failed may have left any.
func Remove(t testing.TB) {
	t.Helper()
	// Not the test's context: at the end that is over.
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	if _, err := Kubectl(ctx, "", "delete", "deployment", "--namespace="+Namespace, "--ignore-not-found", "--cascade=foreground", Deployment); err != nil {
		t.Errorf("removing the operator: %v", err)
	}
	for _, kind := range []string{"storagebuckets", "bucketproviderconfigs"} {
		objects, err := Kubectl(ctx, "", "get", kind+".storage.avalonhosting.example", "--all-namespaces",
			`-o=jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`)
		if err != nil {
			continue // there is no such kind
		}
		for line := range strings.Lines(objects) {
			namespace, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			if _, err := Kubectl(ctx, "", "--namespace="+namespace, "patch", kind, name, "--type=merge", `--patch={"metadata":{"finalizers":null}}`); err != nil {
				t.Errorf("letting go of what is left: %v", err)
			}
		}
	}
	if _, err := Kubectl(ctx, "", "delete", "--ignore-not-found", "--kustomize", File(t, "config", "default")); err != nil {
		t.Errorf("removing the operator: %v", err)
	}
}

// WaitAvailable waits until all replicas of the newest revision of a Deployment
// are available, and no others are left.
func WaitAvailable(t testing.TB, namespace, name string) {
	t.Helper()
	c := Client(t)
	testnode.Eventually(t, "deployment "+name+" is available", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			return err
		}
		want, s := *d.Spec.Replicas, d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.AvailableReplicas != want || s.Replicas != want {
			return fmt.Errorf("of %d replicas %d are of the newest revision, %d available, %d in all", want, s.UpdatedReplicas, s.AvailableReplicas, s.Replicas)
		}
		return nil
	})
}

// Leader is who holds the lease.
type Leader struct {
	// Pod is the one that the leader runs in.
	Pod *corev1.Pod
	// Holder is the process: one that is started again in the pod is another.
	Holder string
	// Since is when it took the lease.
	Since time.Time
}

func leader(ctx context.Context, c client.Client) (*Leader, error) {
	lease := &coordinationv1.Lease{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Lease}, lease); err != nil {
		return nil, err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.AcquireTime == nil {
		return nil, fmt.Errorf("nobody holds the lease")
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod := &corev1.Pod{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, pod); err != nil {
		return nil, err
	}
	return &Leader{Pod: pod, Holder: *lease.Spec.HolderIdentity, Since: lease.Spec.AcquireTime.Time}, nil
}

// WaitLeader waits until a process leads that is not the former one, nil for any.
func WaitLeader(t testing.TB, c client.Client, former *Leader) *Leader {
	t.Helper()
	var found *Leader
	testnode.Eventually(t, "a process leads", func(ctx context.Context) (err error) {
		found, err = leader(ctx, c)
		if err == nil && former != nil && found.Holder == former.Holder {
			err = fmt.Errorf("%s still holds the lease", former.Holder)
		}
		return err
	})
	return found
}

// WaitGone waits until an object is no more.
func WaitGone(t testing.TB, c client.Client, object client.Object) {
	t.Helper()
	key := client.ObjectKeyFromObject(object)
	testnode.Eventually(t, fmt.Sprintf("%T %s is gone", object, key), func(ctx context.Context) error {
		err := c.Get(ctx, key, object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is still there, with the finalizers %v", object.GetFinalizers())
	})
}
