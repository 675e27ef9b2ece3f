package testnode_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

func TestKilledProcessIsStartedAnew(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	for name, test := range map[string]struct {
		program  string
		signal   syscall.Signal
		exitCode int32
	}{
		"killed-first":   {"", syscall.SIGKILL, 137},
		"killed-by-name": {"redis-server", syscall.SIGKILL, 137},
		"asked-to-end":   {"redis-server", syscall.SIGTERM, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := testnode.RunPod(t, redis(t, namespace, name))
			testnode.Signal(t, pod, name, test.program, test.signal)
			testnode.Eventually(t, "the container has been started anew", func(ctx context.Context) error {
				status, err := testnode.ContainerStatus(ctx, t, pod, name)
				if err != nil {
					return err
				}
				if status.RestartCount == 0 || !status.Ready {
					return fmt.Errorf("%d restarts, ready: %t", status.RestartCount, status.Ready)
				}
				if got := status.LastTerminationState.Terminated; got == nil || got.ExitCode != test.exitCode {
					t.Errorf("it ended as %+v, want exit code %d", got, test.exitCode)
				}
				return nil
			})
		})
	}
}

func TestFrozenProcessIsNotReadyUntilItGoesOn(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	pod := testnode.RunPod(t, redis(t, namespace, "frozen"))
	testnode.Signal(t, pod, "frozen", "redis-server", syscall.SIGSTOP)
	testnode.Eventually(t, "the container is not ready", func(ctx context.Context) error {
		status, err := testnode.ContainerStatus(ctx, t, pod, "frozen")
		if err == nil && status.Ready {
			err = fmt.Errorf("it is ready")
		}
		return err
	})
	testnode.Signal(t, pod, "frozen", "redis-server", syscall.SIGCONT)
	testnode.WaitReady(t, pod)
}

func TestDiagnosisShowsEventsAndLogs(t *testing.T) {
	t.Parallel()
	namespace := testnode.Namespace(t)
	testnode.RunPod(t, redis(t, namespace, "server"))
	told := testnode.Diagnose(t.Context(), namespace)
	for _, want := range []string{
		"Successfully assigned " + namespace + "/server", // an event
		"Ready to accept connections",                    // the log
		string(corev1.PodReady),
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the diagnosis lacks %q:\n%s", want, told)
		}
	}
}
