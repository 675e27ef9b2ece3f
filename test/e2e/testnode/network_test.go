package testnode_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// ask has one pod ask another host, and returns the answer.
func ask(ctx context.Context, t *testing.T, asker *corev1.Pod, host string) (string, error) {
	t.Helper()
	return askURL(ctx, t, asker, fmt.Sprintf("http://%s:%d/", host, echoPort))
}

// askURL has a pod ask. The request gets to the pod by way of the API server.
func askURL(ctx context.Context, t *testing.T, asker *corev1.Pod, url string) (string, error) {
	t.Helper()
	answer, err := testnode.Client(t).CoreV1().Pods(asker.Namespace).
		ProxyGet("http", asker.Name, strconv.Itoa(echoPort), "/ask", map[string]string{"url": url}).
		DoRaw(ctx)
	return string(answer), err
}

// expectAnswer waits until the host answers with its pod's name.
func expectAnswer(t *testing.T, asker *corev1.Pod, host, want string) {
	t.Helper()
	testnode.Eventually(t, host+" answers "+asker.Name, func(ctx context.Context) error {
		answer, err := ask(ctx, t, asker, host)
		if err == nil && answer != want {
			err = fmt.Errorf("it answers %q, want %q", answer, want)
		}
		return err
	})
}

func expectNoAnswer(t *testing.T, asker *corev1.Pod, host string) {
	t.Helper()
	testnode.Eventually(t, host+" does not answer "+asker.Name, func(ctx context.Context) error {
		answer, err := ask(ctx, t, asker, host)
		if err == nil {
			return fmt.Errorf("it answers %q", answer)
		}
		if ctx.Err() != nil {
			return errors.New("nobody could ask")
		}
		return nil
	})
}

func TestPodsFindOneAnotherByServiceName(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	asker, server := testnode.RunPod(t, echo(t, namespace, "asker")), testnode.RunPod(t, redis(t, namespace, "server"))
	service(t, server, redisPort)
	other := testnode.RunPod(t, echo(t, namespace, "other"))
	service(t, other, echoPort)

	expectAnswer(t, asker, "other", "other")
	expectAnswer(t, asker, "other."+namespace+".svc.cluster.local", "other")
	// A pod that asks for its own service gets to itself.
	expectAnswer(t, other, "other", "other")

	// Debian's programs look names up by the C library.
	client := testnode.RunPod(t, redis(t, namespace, "client"))
	testnode.Eventually(t, "redis answers by its service's name", func(ctx context.Context) error {
		answer, err := testnode.Exec(ctx, namespace, client.Name, "", "redis-cli", "-h", "server", "ping")
		if err == nil && answer != "PONG" {
			err = fmt.Errorf("it answers %q", answer)
		}
		return err
	})
}

func TestPodReachesTheAPIServerByItsService(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	asker := testnode.RunPod(t, echo(t, namespace, "asker"))
	// It speaks TLS alone, and says so in plain HTTP.
	testnode.Eventually(t, "the API server answers", func(ctx context.Context) error {
		answer, err := askURL(ctx, t, asker, "http://kubernetes.default:443/")
		if err == nil && !strings.Contains(answer, "HTTP request to an HTTPS server") {
			err = fmt.Errorf("it answers %q", answer)
		}
		return err
	})
}

func TestCutPodIsAloneUntilMended(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	asker, other := testnode.RunPod(t, echo(t, namespace, "asker")), testnode.RunPod(t, echo(t, namespace, "other"))
	expectAnswer(t, asker, other.Status.PodIP, "other")

	mend := testnode.Cut(t, other)
	expectNoAnswer(t, asker, other.Status.PodIP)
	mend()
	expectAnswer(t, asker, other.Status.PodIP, "other")
}

func TestCutFromOnePeerLeavesTheOthers(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	asker := testnode.RunPod(t, echo(t, namespace, "asker"))
	cut, kept := testnode.RunPod(t, echo(t, namespace, "cut")), testnode.RunPod(t, echo(t, namespace, "kept"))
	byName := service(t, cut, echoPort)
	expectAnswer(t, asker, "cut", "cut")

	mend := testnode.Cut(t, asker, cut.Status.PodIP, byName.Spec.ClusterIP)
	expectNoAnswer(t, asker, cut.Status.PodIP)
	expectNoAnswer(t, asker, "cut")
	expectAnswer(t, asker, kept.Status.PodIP, "kept")
	mend()
	expectAnswer(t, asker, "cut", "cut")
}
