package testnode_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// The tests here break the whole node: none runs beside them.

func TestFrozenKubeletMakesTheNodeNotReadyAndRunsItsPodsOn(t *testing.T) { //nolint:paralleltest // see above
	namespace := testnode.Namespace(t)
	node := testnode.NodeName(t)
	asker, other := testnode.RunPod(t, echo(t, namespace, "asker")), testnode.RunPod(t, echo(t, namespace, "other"))
	expectAnswer(t, asker, other.Status.PodIP, "other")

	thaw := testnode.FreezeKubelet(t)
	testnode.WaitNodeReady(t, node, corev1.ConditionUnknown)
	thaw()
	testnode.WaitNodeReady(t, node, corev1.ConditionTrue)
	expectAnswer(t, asker, other.Status.PodIP, "other")
	testnode.WaitReady(t, other)
}

func TestDrainEvictsAndKeepsPodsOff(t *testing.T) { //nolint:paralleltest // see above
	namespace := testnode.Namespace(t)
	evicted := testnode.RunPod(t, echo(t, namespace, "evicted"))
	client := testnode.Client(t).CoreV1().Pods(namespace)

	uncordon := testnode.Drain(t)
	if _, err := client.Get(t.Context(), evicted.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod after the drain: %v, want not found", err)
	}
	later, err := client.Create(t.Context(), echo(t, namespace, "later"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	testnode.Eventually(t, "the scheduler has no node for a pod", func(ctx context.Context) error {
		live, err := client.Get(ctx, later.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range live.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return nil
			}
		}
		return errors.New("it has not said so")
	})
	uncordon()
	testnode.WaitReady(t, later)
}
