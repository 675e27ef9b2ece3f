package testnode

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// logLines are how many lines of each container's log Diagnose shows.
const logLines = "50"

// Diagnose tells what a person would ask of a namespace in which something went
// wrong: nodes, pods, events and logs. What cannot be had is told, too.
func Diagnose(ctx context.Context, namespace string) string {
	var told strings.Builder
	ask := func(args ...string) {
		output, err := kubectl(ctx, args...)
		if err != nil {
			output = err.Error()
		}
		fmt.Fprintf(&told, "$ kubectl %s\n%s\n", strings.Join(args, " "), output)
	}
	in := "--namespace=" + namespace
	ask("get", "nodes", "-o", "wide")
	ask(in, "get", "all", "-o", "wide")
	ask(in, "events")
	ask(in, "describe", "pods")
	names, err := podNames(ctx, namespace)
	if err != nil {
		fmt.Fprintf(&told, "listing the pods: %v\n", err)
	}
	for _, name := range names {
		ask(in, "logs", name, "--all-containers", "--prefix", "--tail="+logLines)
		ask(in, "logs", name, "--all-containers", "--prefix", "--tail="+logLines, "--previous", "--ignore-errors")
	}
	return told.String()
}

func podNames(ctx context.Context, namespace string) ([]string, error) {
	client, err := kubernetes.NewForConfig(Config())
	if err != nil {
		return nil, err
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	return names, nil
}
