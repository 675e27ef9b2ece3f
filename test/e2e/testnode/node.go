package testnode

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"avalonhosting.example/bucketoperator/internal/testkit"
)

// NodeName is the name of the project's own node. It skips the test on another
// cluster, which may have many.
func NodeName(t testing.TB) string {
	t.Helper()
	NeedsOwnNode(t, "breaking a node")
	nodes, err := Client(t).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("looking for the node: %v", err)
	}
	if len(nodes.Items) != 1 {
		t.Fatalf("looking for the node: there are %d", len(nodes.Items))
	}
	return nodes.Items[0].Name
}

// WaitNodeReady waits until the condition Ready of the node has that status.
func WaitNodeReady(t testing.TB, name string, want corev1.ConditionStatus) {
	t.Helper()
	client := Client(t)
	Eventually(t, fmt.Sprintf("the condition Ready of node %s is %s", name, want), func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		if i < 0 {
			return fmt.Errorf("it has no condition %s", corev1.NodeReady)
		}
		return unlike("the condition", node.Status.Conditions[i].Status, want)
	})
}

// Drain evicts all pods from the project's own node, as `kubectl drain` does: with
// respect to their disruption budgets, and those without a controller for good. No
// pod is scheduled there until uncordon is called, or the test ends; only the DNS
// server comes back at once. It skips the test on another cluster.
func Drain(t testing.TB) (uncordon func()) {
	t.Helper()
	node := NodeName(t)
	uncordon = func() {
		// Not the test's context: at the end that is over.
		if _, err := kubectl(context.Background(), "uncordon", node); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(uncordon)
	Kubectl(t, "drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout="+testkit.Patience.String())
	return uncordon
}
