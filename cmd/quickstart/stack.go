package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"avalonhosting.example/bucketoperator/internal/programs"
	"avalonhosting.example/bucketoperator/localcluster"
)

// stack is all that runs.
type stack struct {
	options  options
	folder   *folder
	cluster  *localcluster.Cluster
	kubectl  kubectl
	provider *programs.Provider
	manager  *localcluster.Program
}

// errInterrupted is the end that the user asked for.
var errInterrupted = errors.New("interrupted")

// withStack starts it all, calls work, and stops it all again. A program that
// ends by itself ends the work, too. When ctx ends, so does the work, which is
// a failure unless the work says otherwise.
func withStack(ctx context.Context, o options, work func(context.Context, *stack) error) (err error) {
	s := &stack{options: o}
	s.folder, err = openFolder(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()

	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err = s.start(working, cancel); err == nil {
		err = work(working, s)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return errInterrupted // whatever it was that failed for it
	case ctx.Err() != nil:
		return nil
	case working.Err() != nil:
		return context.Cause(working) // a program ended
	}
	return err
}

func (s *stack) start(ctx context.Context, fail context.CancelCauseFunc) error {
	s.say("Building the operator and the provider")
	if err := programs.Build(ctx, s.options.root, s.folder.path); err != nil {
		return err
	}
	s.say("Starting a control plane (built from source the first time, about 12 minutes on 2 cores)")
	if err := s.startCluster(ctx, fail); err != nil {
		return err
	}
	s.say("Giving the operator the permissions of config/rbac")
	for _, args := range [][]string{
		{"apply", "-f", filepath.Join("config", "default", "namespace.yaml")},
		{"apply", "-k", filepath.Join("config", "rbac")},
	} {
		if _, err := s.kubectl.run(ctx, args...); err != nil {
			return err
		}
	}
	s.say("Starting the provider and the operator")
	var err error
	if s.provider, err = programs.StartProvider(ctx, s.folder.path, "provider", s.folder.file("mockprovider.log"),
		"--activate-after="+s.options.activateAfter.String(), fmt.Sprintf("--minimal=%t", s.options.minimal)); err != nil {
		return err
	}
	watch(s.provider.Program, fail)
	return s.startManager(fail)
}

func (s *stack) startCluster(ctx context.Context, fail context.CancelCauseFunc) error {
	crds, err := localcluster.ProjectCRDs()
	if err != nil {
		return err
	}
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: s.folder.file("cluster"), Progress: s.options.stderr, CRDs: []string{crds},
	})
	if err != nil {
		return err
	}
	go func() {
		if err := s.cluster.Wait(ctx); err != nil {
			fail(err)
		}
	}()
	program := s.cluster.Assets().Kubectl
	if program == "" {
		return fmt.Errorf("there is no kubectl in %s: unset %s to have one built", s.cluster.Assets().Dir, localcluster.AssetsEnv)
	}
	s.kubectl = kubectl{
		program: program, link: filepath.Join(filepath.Dir(s.folder.path), "kubectl"), root: s.options.root,
		kubeconfig: s.folder.file("kubeconfig"), cache: s.folder.file("kubectl-cache"),
	}
	if err := s.kubectl.linkKubectl(); err != nil {
		return err
	}
	return s.cluster.WriteKubeconfig(s.kubectl.kubeconfig)
}

func (s *stack) startManager(fail context.CancelCauseFunc) error {
	kubeconfig := s.folder.file("operator.kubeconfig")
	if err := programs.WriteAccountKubeconfig(s.cluster, programs.OperatorNamespace, programs.OperatorAccount, kubeconfig); err != nil {
		return err
	}
	manager, err := localcluster.StartProgram("the operator", s.folder.file("manager"), []string{
		"--kubeconfig=" + kubeconfig,
		"--leader-elect", "--leader-election-namespace=" + programs.OperatorNamespace,
		// There is no standby, and the machine may be busy with a build.
		"--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=50s",
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0",
		"--default-provider-endpoint=" + s.provider.URL, "--allow-loopback-endpoints",
	}, s.folder.file("manager.log"))
	if err != nil {
		return err
	}
	s.manager = manager
	watch(manager, fail)
	return nil
}

// watch calls fail when the program ends. When it was stopped, nobody listens.
func watch(program *localcluster.Program, fail context.CancelCauseFunc) {
	go func() {
		<-program.Ended()
		fail(program.Err())
	}()
}

// stop stops what was started, in reverse order: the operator gives back its
// lease while there is an API server. It returns when all is gone.
func (s *stack) stop() error {
	var errs []error
	if s.manager != nil {
		errs = append(errs, s.manager.Stop())
	}
	if s.provider != nil {
		errs = append(errs, s.provider.Program.Stop())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.kubectl.link != "" {
		errs = append(errs, s.kubectl.unlinkKubectl())
	}
	return errors.Join(append(errs, s.folder.close(s.options.keep))...)
}

// say tells how the start and the end get on.
func (s *stack) say(what string) { fmt.Fprintf(s.options.stderr, "==> %s\n", what) }
