package lifecycle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/e2e/audit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// teams are the namespaces that config/namespaced names.
var teams = []string{"team-a", "team-b"}

func TestAnOperatorForSomeNamespacesKeepsToThem(t *testing.T) {
	for _, way := range []struct {
		name            string
		install, remove func(*testing.T)
	}{
		{
			"by config/namespaced",
			func(t *testing.T) {
				runs(t, "make deploy CONFIG=config/namespaced IMG="+installation.ImageInUse())
				// What looks like an upgrade would give it rights everywhere.
				if output, err := try(t, "make deploy"); err == nil || !strings.Contains(output, "CONFIG=config/namespaced") {
					t.Errorf("make deploy over an operator for some namespaces ends with %v, want a refusal: %s", err, output)
				}
			},
			func(t *testing.T) { runs(t, "make undeploy uninstall CONFIG=config/namespaced") },
		},
		{
			"by the chart",
			func(t *testing.T) {
				runs(t, "kubectl create namespace "+installation.Namespace)
				runs(t, helm+"install bucketoperator charts/bucketoperator --namespace "+installation.Namespace+
					" --wait --timeout 3m"+imageValues()+" --set 'namespaces={"+strings.Join(teams, ",")+"}'")
			},
			func(t *testing.T) {
				runs(t, helm+"uninstall bucketoperator --namespace "+installation.Namespace+" --wait && make uninstall"+
					" && kubectl delete namespace "+installation.Namespace)
			},
		},
	} {
		t.Run(way.name, func(t *testing.T) {
			c, begun := installation.Client(t), time.Now()
			for _, team := range teams {
				namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}
				if err := c.Create(t.Context(), namespace); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					// Not the test's context: at the end that is over.
					if _, err := installation.Kubectl(context.Background(), "", "delete", "namespace", "--ignore-not-found", "--timeout=3m", team); err != nil {
						t.Error(err)
					}
				})
			}
			before := inventory(t)
			t.Cleanup(func() { installation.Remove(t) })
			way.install(t)
			installation.WaitAvailable(t, installation.Namespace, installation.Deployment)

			elsewhere := testnode.Namespace(t)
			served := &states{client: c, provider: installation.StartProvider(t, "--activate-after=0s")}
			for _, served.namespace = range append([]string{elsewhere}, teams...) {
				served.create(t,
					&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"apiKey": "rehearsal"}},
					&storagev1.BucketProviderConfig{
						ObjectMeta: metav1.ObjectMeta{Name: defaultConfig},
						Spec: storagev1.BucketProviderConfigSpec{
							Endpoint: served.provider.Endpoint(), SecretRef: storagev1.SecretReference{Name: "credentials"},
						},
					},
					newBucket(active, region, ""))
			}
			for _, served.namespace = range teams {
				served.wait(t, active, "Ready", metav1.ConditionTrue, "")
			}
			served.namespace = elsewhere
			if b := served.bucket(t, active); len(b.Finalizers) > 0 || len(b.Status.Conditions) > 0 {
				t.Errorf("the operator works on a bucket elsewhere: %v, %+v", b.Finalizers, b.Status)
			}
			runs(t, script(t, "install.md", "Uninstall"))
			if left, err := served.provider.Buckets(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("the provider still has %v (%v)", left, err)
			}
			// Helm takes the rights and the pods at the same time: what they ask from
			// here on may be refused.
			asked := installation.Requests(t, begun)
			way.remove(t)
			served.expectInventory(t, before)

			for _, r := range audit.Denied(asked, installation.User) {
				t.Errorf("forbidden: %s", r)
			}
			theirs := append([]string{installation.Namespace}, teams...)
			// Of who reads the metrics, and of what it may do.
			reviews := []string{"tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
			for _, r := range asked {
				if r.User == installation.User && r.Resource != "" && !slices.Contains(theirs, r.Namespace) && !slices.Contains(reviews, r.Resource) {
					t.Errorf("the operator asked for more than its namespaces: %s", r)
				}
			}
			if err := c.List(t.Context(), &storagev1.StorageBucketList{}, client.InNamespace(elsewhere)); err == nil {
				t.Error("the CRDs are still there")
			}
		})
	}
}
