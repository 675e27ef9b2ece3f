package operator_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// crowd is how many buckets are under way when the leader is harmed.
const crowd = 40

// inTheMiddle makes a crowd of buckets, and returns when the leader has called
// the provider for some of them. Each call takes a moment, so that there are
// calls under way at any time.
func (s *suite) inTheMiddle(t *testing.T, namespace string) {
	t.Helper()
	if err := s.provider.Fail(t.Context(), `{"latency": "200ms"}`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.provider.Heal(context.Background()); err != nil { // the test's context is over
			t.Error(err)
		}
	})
	s.create(t, namespace, newBuckets("photos", crowd)...)
	testnode.Eventually(t, "some of the buckets are made", func(ctx context.Context) error {
		have, err := s.provider.Buckets(ctx)
		if err == nil && len(have) < crowd/10 {
			err = fmt.Errorf("%d of %d are", len(have), crowd)
		}
		return err
	})
	if have, err := s.provider.Buckets(t.Context()); err != nil || len(have) >= crowd {
		t.Fatalf("the leader was quicker than the test: there are %d buckets (%v)", len(have), err)
	}
}

// leaderKilled has another process go on with what the leader left half done: the
// standby or, if that is quicker, the one that is started in the leader's place.
func (s *suite) leaderKilled(t *testing.T) {
	testnode.NeedsOwnNode(t, "killing the leader's process")
	namespace := s.namespace(t)
	former := installation.WaitLeader(t, s.client, nil)
	s.inTheMiddle(t, namespace)
	killed := time.Now()
	testnode.Signal(t, former.Pod, installation.Container, "", syscall.SIGKILL)
	since := installation.WaitLeader(t, s.client, former).Since
	t.Logf("takeover: another process leads %.1f s after the kill", since.Sub(killed).Seconds())
	buckets := s.waitAllReady(t, namespace, crowd)
	t.Logf("takeover: all %d buckets are ready %.1f s after the kill", crowd, time.Since(killed).Seconds())
	s.expectOneEach(t, buckets)
	s.removeAll(t, namespace)
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
}

// leaderPaused has the former leader wake up when another leads: it must change
// nothing more, and end.
func (s *suite) leaderPaused(t *testing.T) {
	testnode.NeedsOwnNode(t, "pausing the leader's process")
	namespace := s.namespace(t)
	former := installation.WaitLeader(t, s.client, nil)
	leader := former.Pod
	restarts := s.restarts(t, leader)
	s.inTheMiddle(t, namespace)
	paused := time.Now()
	testnode.Signal(t, leader, installation.Container, "", syscall.SIGSTOP)
	successor := installation.WaitLeader(t, s.client, former)
	t.Logf("takeover: another leads %.1f s after the pause began", successor.Since.Sub(paused).Seconds())
	if successor.Pod.UID == leader.UID {
		t.Fatal("the standby did not take over: the paused process was ended from outside, and its successor leads")
	}

	resumed := time.Now()
	testnode.Signal(t, leader, installation.Container, "", syscall.SIGCONT)
	testnode.Eventually(t, "the former leader ends", func(ctx context.Context) error {
		status, err := testnode.ContainerStatus(ctx, t, leader, installation.Container)
		switch {
		case err != nil:
			return err
		case status.RestartCount == restarts:
			return fmt.Errorf("it runs on")
		}
		ended := status.LastTerminationState.Terminated
		if ended == nil || ended.ExitCode == 0 {
			return fmt.Errorf("it ended as %+v, want a failure", status.LastTerminationState)
		}
		t.Logf("the former leader ended with code %d, %.1f s after it went on", ended.ExitCode, ended.FinishedAt.Sub(resumed).Seconds())
		return nil
	})
	buckets := s.waitAllReady(t, namespace, crowd)
	s.expectOneEach(t, buckets)
	s.removeAll(t, namespace)
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)

	// Its next life may work again, but only as the leader. The kubelet tells the
	// second that it began in, in which it asks what it may do.
	next := s.nextLife(t, leader).Add(time.Second)
	if !next.After(resumed) {
		t.Fatal("the paused process was ended from outside before it could go on")
	}
	worked := false
	for _, r := range installation.Requests(t, s.begun) {
		changes := r.Pod == leader.Name && r.Writes() && r.Resource != "leases" && r.Resource != "selfsubjectaccessreviews"
		worked = worked || changes && r.Received.Before(paused)
		if changes && r.Received.After(resumed) && r.Received.Before(next) {
			t.Errorf("after its pause the former leader sent %s", r)
		}
	}
	if !worked {
		t.Errorf("the audit log has no write of pod %s from before its pause: it cannot tell of those after", leader.Name)
	}
	calls, err := s.provider.CallsFrom(t.Context(), leader.Status.PodIP)
	if err != nil {
		t.Fatal(err)
	}
	called := false
	for _, c := range calls {
		called = called || c.At.Before(paused)
		if c.At.After(resumed) && c.At.Before(next) {
			t.Errorf("after its pause the former leader called the provider: %+v", c)
		}
	}
	if !called {
		t.Errorf("the provider knows of no call of pod %s from before its pause: it cannot tell of those after", leader.Name)
	}
}

// leaderDrained has the leader told to end, as by a rollout.
func (s *suite) leaderDrained(t *testing.T) {
	namespace := s.namespace(t)
	former := installation.WaitLeader(t, s.client, nil)
	s.inTheMiddle(t, namespace)
	told := time.Now()
	if err := s.client.Delete(t.Context(), former.Pod); err != nil {
		t.Fatal(err)
	}
	since := installation.WaitLeader(t, s.client, former).Since
	t.Logf("takeover: another leads %.1f s after the leader was told to end", since.Sub(told).Seconds())
	s.expectOneEach(t, s.waitAllReady(t, namespace, crowd))
	s.removeAll(t, namespace)
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
}

func (s *suite) restarts(t *testing.T, pod *corev1.Pod) int32 {
	t.Helper()
	status, err := testnode.ContainerStatus(t.Context(), t, pod, installation.Container)
	if err != nil {
		t.Fatal(err)
	}
	return status.RestartCount
}

// nextLife is when the container began to run again.
func (s *suite) nextLife(t *testing.T, pod *corev1.Pod) time.Time {
	t.Helper()
	live := &corev1.Pod{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(pod), live); err != nil {
		t.Fatal(err)
	}
	for _, status := range live.Status.ContainerStatuses {
		if status.Name == installation.Container && status.State.Running != nil {
			return status.State.Running.StartedAt.Time
		}
	}
	t.Fatalf("the operator does not run again in pod %s: %+v", pod.Name, live.Status)
	return time.Time{}
}
