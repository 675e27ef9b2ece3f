package testnode

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunPod creates a pod in its namespace, waits until it is ready, and returns it
// as it then is.
func RunPod(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := Client(t).CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating pod %s: %v", pod.Name, err)
	}
	return WaitReady(t, created)
}

// WaitReady waits until the pod is ready, and returns it as it then is.
func WaitReady(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	client := Client(t)
	var live *corev1.Pod
	Eventually(t, "pod "+pod.Name+" is ready", func(ctx context.Context) (err error) {
		live, err = client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		i := slices.IndexFunc(live.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		if i < 0 {
			return fmt.Errorf("it has no condition %s", corev1.PodReady)
		}
		return unlike("its condition Ready ("+live.Status.Conditions[i].Message+")", live.Status.Conditions[i].Status, corev1.ConditionTrue)
	})
	return live
}

// ContainerStatus returns the status of a container of a pod as it is now.
func ContainerStatus(ctx context.Context, t testing.TB, pod *corev1.Pod, container string) (corev1.ContainerStatus, error) {
	live, err := Client(t).CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return corev1.ContainerStatus{}, err
	}
	for _, status := range live.Status.ContainerStatuses {
		if status.Name == container {
			return status, nil
		}
	}
	return corev1.ContainerStatus{}, fmt.Errorf("pod %s has no status of a container %s", pod.Name, container)
}
