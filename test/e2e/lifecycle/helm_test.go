package lifecycle_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
)

// helm is the chart's own command line.
const helm = "go tool -modfile=tools/helm/go.mod helm "

// imageValues are the arguments that have the chart take the image of this run.
func imageValues() string {
	image := installation.ImageInUse()
	i := strings.LastIndex(image, ":")
	return " --set image.repository=" + image[:i] + ",image.tag=" + image[i+1:]
}

func TestHelmTakesOverFromKustomize(t *testing.T) {
	before := inventory(t)
	t.Cleanup(func() { installation.Remove(t) })
	runs(t, "make deploy IMG="+installation.ImageInUse())
	// What differs from the chart, as somebody has changed it.
	runs(t, "kubectl --namespace="+installation.Namespace+" scale deployment --replicas=1 "+installation.Deployment)
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	s := makeStates(t)
	shot := s.snapshot(t)

	command := strings.TrimSpace(script(t, "install.md", "From kustomize to Helm"))
	runs(t, strings.Replace(command, "helm ", helm, 1)+" --wait --timeout 3m"+imageValues())
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	runs(t, helm+"upgrade bucketoperator charts/bucketoperator --namespace "+installation.Namespace+" --wait --timeout 3m --set replicas=3,resyncInterval=7m"+imageValues())
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	deployment := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: installation.Namespace, Name: installation.Deployment}, deployment); err != nil {
		t.Fatal(err)
	}
	if *deployment.Spec.Replicas != 3 {
		t.Errorf("after an upgrade to 3 replicas there are %d", *deployment.Spec.Replicas)
	}
	s.waitLooked(t)
	s.settle(t)
	s.expectSame(t, shot)

	if err := s.provider.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs(t, script(t, "install.md", "Uninstall"))
	runs(t, helm+"uninstall bucketoperator --namespace "+installation.Namespace+" --wait && make uninstall"+
		" && kubectl delete namespace "+installation.Namespace)
	s.expectInventory(t, before)
}

func TestHelmInstallsUpgradesAndUninstallsTheOperator(t *testing.T) {
	before := inventory(t)
	t.Cleanup(func() { installation.Remove(t) })
	in := "bucketoperator charts/bucketoperator --namespace " + installation.Namespace + " --wait --timeout 3m" + imageValues()
	runs(t, "kubectl create namespace "+installation.Namespace+
		" && kubectl label namespace "+installation.Namespace+" pod-security.kubernetes.io/enforce=restricted")
	runs(t, helm+"install "+in)
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	s := makeStates(t)
	shot := s.snapshot(t)

	runs(t, helm+"upgrade "+in+" --set resyncInterval=7m --set replicas=1")
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
	deployment := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: installation.Namespace, Name: installation.Deployment}, deployment); err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(deployment.Spec.Template.Spec.Containers[0].Args, " "); *deployment.Spec.Replicas != 1 || !strings.Contains(args, "--resync-interval=7m") {
		t.Errorf("after the upgrade there are %d replicas with %s", *deployment.Spec.Replicas, args)
	}
	s.waitLooked(t)
	s.settle(t)
	s.expectSame(t, shot)

	// The CRDs stay, and the objects with them: nobody loses a bucket.
	runs(t, helm+"uninstall bucketoperator --namespace "+installation.Namespace+" --wait")
	if b := s.bucket(t, active); !b.DeletionTimestamp.IsZero() {
		t.Errorf("helm uninstall deletes the users' buckets")
	}
	runs(t, helm+"install "+in)
	if err := s.provider.Heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs(t, script(t, "install.md", "Uninstall"))
	runs(t, helm+"uninstall bucketoperator --namespace "+installation.Namespace+" --wait && make uninstall")
	if err := s.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installation.Namespace}}); err != nil {
		t.Fatal(err)
	}
	installation.WaitGone(t, s.client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installation.Namespace}})
	s.expectInventory(t, before)
	if err := s.client.List(t.Context(), &storagev1.StorageBucketList{}); err == nil {
		t.Error("the CRDs are still there")
	}
}
