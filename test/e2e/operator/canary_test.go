package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// canaryKey is a provider's key like no other text. All of the suite use it, so
// that the logs of lives that have ended might hold it.
const canaryKey = "canary-hT7mQe42VxNd"

// canary looks for a provider's key in all that people may read who may not read
// the Secret it is in, when the provider has taken it, refused it, and repeated
// it in its messages.
func (s *suite) canary(t *testing.T) {
	testnode.NeedsOwnNode(t, "reaching pods from the test")
	namespace := s.namespace(t)
	message, err := json.Marshal(map[string]any{
		"operation": "Create", "status": 400, "body": fmt.Sprintf(`{"message":"the key %s is too old"}`, canaryKey), "from": 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.provider.Fail(t.Context(), string(message)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.provider.Heal(context.Background()); err != nil { // the test's context is over
			t.Error(err)
		}
	})
	s.create(t, namespace, testkit.Bucket("photos"))
	s.waitAllReady(t, namespace, 1)
	s.create(t, namespace, testkit.Bucket("told"))
	testnode.Eventually(t, "the provider's message is passed on", func(ctx context.Context) error {
		bucket := &storagev1.StorageBucket{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "told"}, bucket); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(bucket.Status.Conditions, "Ready"); c == nil || !strings.Contains(c.Message, "is too old") {
			return fmt.Errorf("Ready is %+v", c)
		}
		return nil
	})

	readable := s.readable(t, namespace)
	for _, where := range slices.Sorted(maps.Keys(readable)) {
		if text := readable[where]; strings.Contains(text, canaryKey) {
			at := strings.Index(text, canaryKey)
			t.Errorf("%s holds the key: %s", where, text[max(0, at-200):min(len(text), at+200)])
		}
	}
	s.removeAll(t, namespace)
}

// readable is all that may be read by others than those who may read Secrets.
func (s *suite) readable(t *testing.T, namespace string) map[string]string {
	t.Helper()
	readable := map[string]string{}
	pods := &corev1.PodList{}
	if err := s.client.List(t.Context(), pods, client.InNamespace(installation.Namespace)); err != nil {
		t.Fatal(err)
	}
	token, formerLives := s.metricsReader(t, namespace), 0
	for _, pod := range pods.Items {
		log := []string{"--namespace=" + pod.Namespace, "logs", pod.Name, "--all-containers"}
		readable["the log of "+pod.Name] = testnode.Kubectl(t, log...)
		if pod.Status.ContainerStatuses[0].RestartCount > 0 {
			formerLives++
			readable["the log of the former life of "+pod.Name] = testnode.Kubectl(t, append(log, "--previous")...)
		}
		for _, port := range pod.Spec.Containers[0].Ports {
			if port.Name != "metrics" {
				continue
			}
			url := "https://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort))) + "/metrics"
			code, body, err := get(t.Context(), url, token)
			if err != nil || code != 200 {
				t.Fatalf("%s answers with %d (%v): %s", url, code, err, body)
			}
			readable["what "+pod.Name+" measures"] = body
		}
	}
	for kind := range strings.FieldsSeq(testnode.Kubectl(t, "api-resources", "--verbs=list", "--output=name")) {
		if kind != "secrets" {
			readable["the "+kind] = testnode.Kubectl(t, "get", kind, "--all-namespaces", "--output=json", "--show-managed-fields")
		}
	}
	log, err := os.ReadFile(installation.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	readable["the audit log"] = string(log)

	// It looks in the right places: what has to be there is.
	for where, what := range map[string]string{
		"the storagebuckets.storage.avalonhosting.example": "is too old",
		"the events.events.k8s.io":                         "told",
		"the audit log":                                    namespace,
	} {
		if !strings.Contains(readable[where], what) {
			t.Errorf("%s does not hold %q: the search is worth nothing", where, what)
		}
	}
	if formerLives == 0 {
		t.Error("no pod had a former life, whose log to search")
	}
	if n := strings.Count(strings.Join(slices.Collect(maps.Keys(readable)), "\n"), "what "); n != len(pods.Items) {
		t.Errorf("the metrics of %d of %d pods were searched", n, len(pods.Items))
	}
	return readable
}
