//go:build linux

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/internal/process"
)

// startTimeout bounds a start inside. It is many times what a start takes, for
// machines under load.
const startTimeout = 5 * time.Minute

// stateTimeout bounds a look at a cluster that did not start.
const stateTimeout = 10 * time.Second

// supervisor starts the programs of a node, inside its namespaces, and watches
// over them.
type supervisor struct {
	spec    spec
	begun   time.Time
	cluster *localcluster.Cluster
	// programs beside the control plane.
	programs []*process.Process
}

// runSupervisor starts the node, tells by status that it is up, and stays until
// it is told to stop, which is no error, or a program ends.
func runSupervisor(ctx context.Context, status *os.File) error {
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer cancel()
	s := &supervisor{begun: time.Now()}
	if err := json.NewDecoder(os.Stdin).Decode(&s.spec); err != nil {
		return fmt.Errorf("reading what to start: %w", err)
	}
	err := s.start(ctx)
	if err == nil {
		report(status, message{Up: s.up()})
		err = s.wait(ctx)
	}
	if ctx.Err() != nil {
		err = nil // it was told to stop, however far it was
	}
	if s.cluster != nil {
		// In order, so that the audit log is whole. The rest ends with this process.
		err = errors.Join(err, s.cluster.Stop())
	}
	return err
}

func (s *supervisor) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := isolateMounts(s.spec); err != nil {
		return err
	}
	if err := os.Setenv("PATH", searchPath(s.spec.Kubernetes, s.spec.Containerd)); err != nil {
		return err
	}
	if err := setUpNetwork(ctx); err != nil {
		return err
	}
	// The first of the two that fails ends the other.
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return s.startControlPlane(both) })
	group.Go(func() error { return s.startRuntime(both) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.startNode(); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

func (s *supervisor) startControlPlane(ctx context.Context) error {
	if err := os.Setenv(localcluster.AssetsEnv, s.spec.Kubernetes); err != nil {
		return err
	}
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Dir:                   mounted.controlPlane(),
		Progress:              os.Stderr,
		CRDs:                  s.spec.CRDs,
		Controllers:           []string{"*"},
		Scheduler:             true,
		NodeAddress:           nodeAddress,
		ControllerManagerArgs: []string{graceArg},
		AuditLog:              s.spec.AuditLog,
		AuditPolicy:           s.spec.AuditPolicy,
	})
	if err != nil {
		return err
	}
	s.cluster = cluster
	s.say("the control plane answers")
	return installDNS(ctx, cluster)
}

func (s *supervisor) startRuntime(ctx context.Context) error {
	containerd, err := startContainerd(ctx, s.spec)
	if err != nil {
		return err
	}
	s.programs = append(s.programs, containerd)
	for _, archive := range s.spec.Images {
		if err := ctr(ctx, s.spec.Containerd, importArgs(archive)...); err != nil {
			return fmt.Errorf("loading the image %s: %w", archive, err)
		}
	}
	s.say("containerd has its images")
	return nil
}

func (s *supervisor) startNode() error {
	for _, start := range []func(*localcluster.Cluster) (*process.Process, error){startKubelet, startKubeProxy} {
		p, err := start(s.cluster)
		if err != nil {
			return err
		}
		s.programs = append(s.programs, p)
	}
	return nil
}

// waitReady returns when pods run and find one another by name, or with an error
// as soon as a program ends.
func (s *supervisor) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(s.wait(ctx)) }()
	for _, step := range []struct {
		args []string
		said string
	}{
		{[]string{"wait", "--for=create", "node/" + Name, "--timeout=-1s"}, "the node has joined"},
		{[]string{"wait", "--for=condition=Ready", "node/" + Name, "--timeout=-1s"}, "the node is ready"},
		{[]string{"--namespace=kube-system", "rollout", "status", "deployment/coredns"}, "DNS is ready"},
	} {
		if err := kubectl(ctx, s.cluster, nil, step.args...); err != nil {
			return fmt.Errorf("waiting for the node: %w%s", cmp.Or(context.Cause(ctx), err), s.state(ctx))
		}
		s.say(step.said)
	}
	return nil
}

// state is what there is in the cluster, for an error message. It outlives ctx.
func (s *supervisor) state(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateTimeout)
	defer cancel()
	output, err := kubectlOutput(ctx, s.cluster, nil, "get", "nodes,pods,events", "--all-namespaces")
	if err != nil {
		return "; " + err.Error()
	}
	return "; there are:\n" + output
}

// wait returns nil when ctx ends, and an error when a program does.
func (s *supervisor) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	tell := func(err error) {
		select {
		case ended <- err:
		case <-ctx.Done():
		}
	}
	go func() { tell(s.cluster.Wait(ctx)) }()
	for _, p := range s.programs {
		go func() {
			select {
			case <-p.Ended():
				tell(p.EndedError())
			case <-ctx.Done():
			}
		}()
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (s *supervisor) up() *up {
	components := s.cluster.PIDs()
	for _, p := range s.programs {
		components[p.Name] = p.PID()
	}
	return &up{Kubeconfig: s.cluster.Kubeconfig(), Components: components}
}

// say tells how far the start is.
func (s *supervisor) say(what string) {
	fmt.Fprintf(os.Stderr, "localcluster: node: %s after %s\n", what, time.Since(s.begun).Round(100*time.Millisecond))
}
