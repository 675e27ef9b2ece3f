package lifecycle_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/e2e/audit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
)

// clusterWide are the kinds of cluster-wide objects that an installation makes.
const clusterWide = "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings"

// inventory is what there is cluster-wide, less the namespaces of tests.
func inventory(t *testing.T) []string {
	t.Helper()
	names, err := installation.Kubectl(t.Context(), "", "get", clusterWide, "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for name := range strings.FieldsSeq(names) {
		if !strings.HasPrefix(name, "namespace/test") {
			kept = append(kept, name)
		}
	}
	return kept
}

// runs runs a shell script in the checkout, as a person does that follows the docs.
func runs(t *testing.T, script string) {
	t.Helper()
	if output, err := try(t, script); err != nil {
		t.Fatalf("%s\n%v\n%s", script, err, output)
	}
}

func try(t *testing.T, script string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = installation.File(t)
	output, err := cmd.CombinedOutput()
	return string(bytes.TrimSpace(output)), err
}

// script is the first block of shell commands under a heading of a page of docs/.
func script(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(installation.File(t, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "# "+heading+"\n")
	_, rest, begins := strings.Cut(section, "```sh\n")
	commands, _, ends := strings.Cut(rest, "```")
	if !found || !begins || !ends {
		t.Fatalf("docs/%s has no commands under %q", page, heading)
	}
	return commands
}

func TestAnUninstallInTheDocumentedOrderLeavesNothing(t *testing.T) {
	before, begun := inventory(t), time.Now()
	installation.Install(t)
	s := makeStates(t)
	if output, err := try(t, "make undeploy"); err == nil || !strings.Contains(output, active) {
		t.Errorf("make undeploy ends with %v while there are buckets, want a refusal that names them: %s", err, output)
	}
	if err := s.provider.Heal(t.Context()); err != nil { // it lets buckets be deleted
		t.Fatal(err)
	}
	runs(t, script(t, "install.md", "Uninstall"))
	runs(t, "make undeploy uninstall")

	s.expectInventory(t, before)
	for _, r := range audit.Denied(installation.Requests(t, begun), installation.User) {
		t.Errorf("the operator lost its rights while it was at work: %s", r)
	}
	for _, p := range []*installation.Provider{s.provider, s.slow, s.minimal} {
		if left, err := p.Buckets(t.Context()); err != nil || len(left) > 0 {
			t.Errorf("a provider still has %v (%v)", left, err)
		}
	}
	s.expectNoFinalizer(t)
}

func TestTheWayOutFreesObjectsWhoseOperatorWentFirst(t *testing.T) {
	before := inventory(t)
	installation.Install(t)
	s := makeStates(t)
	runs(t, "kubectl --namespace="+installation.Namespace+" delete deployment "+installation.Deployment)
	runs(t, "kubectl delete storagebuckets,bucketproviderconfigs --all --all-namespaces --wait=false")
	if b := s.bucket(t, active); b.DeletionTimestamp.IsZero() || len(b.Finalizers) == 0 {
		t.Fatalf("without an operator the bucket is not kept: %+v", b.ObjectMeta)
	}
	runs(t, script(t, "troubleshooting.md", "The operator is gone, and objects stay Terminating"))
	installation.WaitGone(t, s.client, &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: active}})
	runs(t, "make undeploy uninstall")
	s.expectInventory(t, before)
	s.expectNoFinalizer(t)
	if left, err := s.provider.Buckets(t.Context()); err != nil || len(left) != 2 {
		t.Errorf("the provider has %v (%v), want the two buckets that nobody deleted there", left, err)
	}
}

// expectInventory compares what there is cluster-wide with what there was.
func (s *states) expectInventory(t *testing.T, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, inventory(t)); diff != "" {
		t.Errorf("the uninstall leaves (+):\n%s", diff)
	}
}

// expectNoFinalizer proves that the users' namespace can go.
func (s *states) expectNoFinalizer(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "credentials"}, secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.Finalizers) > 0 {
		t.Errorf("the user's Secret still has the finalizers %v", secret.Finalizers)
	}
	if err := s.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	installation.WaitGone(t, s.client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
}
