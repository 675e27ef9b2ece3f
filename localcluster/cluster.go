package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"avalonhosting.example/bucketoperator/localcluster/internal/process"
	"avalonhosting.example/bucketoperator/localcluster/internal/workdir"
)

// startTimeout bounds a start, less the build of the programs. It is many times
// what a start takes, for machines under load.
const startTimeout = 3 * time.Minute

// adminUser is who Cluster.Config and Cluster.Kubeconfig are.
const adminUser = "admin"

// Cluster is a running control plane. Its methods may be called from any
// goroutine.
type Cluster struct {
	dir    *workdir.Dir
	assets Assets
	pki    *pki
	server string // URL of the API server
	admin  *rest.Config
	// processes in the order of their start.
	processes []*process.Process
	stopped   chan struct{}
	stop      func() error
}

// Start runs a control plane and returns once it answers and opts.CRDs are
// served. When it fails, nothing is left running, and the error holds the end of
// the log of the program to blame. The ctx bounds the start alone: the cluster
// runs until Stop, or until this process ends.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	// A mistake in the options is told before minutes are spent on a build.
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	assets, err := Binaries(ctx, opts.Progress)
	if err != nil {
		return nil, err
	}
	dir, err := workdir.Open(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("preparing the folder of the cluster: %w", err)
	}
	c := &Cluster{dir: dir, assets: assets, stopped: make(chan struct{})}
	c.stop = sync.OnceValue(c.stopAll)

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx, opts); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the cluster: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, opts Options) error {
	dir := layout(c.dir.Path)
	if err := dir.prepare(opts); err != nil {
		return err
	}
	var err error
	if c.pki, err = newPKI(dir.pki(), opts.serverAddress()); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}

	etcdPort, err := c.run(ctx, etcdComponent(c.assets.Etcd, dir.etcdData(), c.pki.files, opts.Fsync))
	if err != nil {
		return err
	}
	port, err := c.run(ctx, apiServerComponent(c.assets.APIServer, etcdPort, dir, c.pki.files, opts))
	if err != nil {
		return err
	}
	c.server = serverURL(opts.serverAddress(), port)
	if c.admin, err = c.User(adminUser, mastersGroup); err != nil {
		return err
	}
	if err := writeKubeconfig(c.admin, adminUser, dir.kubeconfig()); err != nil {
		return err
	}
	if err := waitForNamespaces(ctx, c.admin); err != nil {
		return err
	}
	if err := InstallCRDs(ctx, c.admin, opts.CRDs...); err != nil {
		return err
	}
	return c.startControllers(ctx, opts)
}

// startControllers runs what works through the API server. Both programs are
// started as one user each, so that the audit log tells who asked.
func (c *Cluster) startControllers(ctx context.Context, opts Options) error {
	if !opts.NoControllerManager {
		if c.assets.ControllerManager == "" {
			fmt.Fprintf(opts.Progress, "localcluster: no %s in %s: owned objects are not collected and namespaces stay Terminating\n", ControllerManager, c.assets.Dir)
		} else if err := c.runAs(ctx, ControllerManager, []string{mastersGroup}, func(kubeconfig string) component {
			return controllerManagerComponent(c.assets.ControllerManager, kubeconfig, c.pki.files, opts)
		}); err != nil {
			return err
		}
	}
	if opts.Scheduler {
		if c.assets.Scheduler == "" {
			fmt.Fprintf(opts.Progress, "localcluster: no %s in %s: pods are not scheduled\n", Scheduler, c.assets.Dir)
		} else if err := c.runAs(ctx, Scheduler, nil, func(kubeconfig string) component {
			return schedulerComponent(c.assets.Scheduler, kubeconfig, c.pki.files)
		}); err != nil {
			return err
		}
	}
	return nil
}

// runAs runs a component that is a client of the API server, by the user name
// that RBAC's default bindings know it under.
func (c *Cluster) runAs(ctx context.Context, name string, groups []string, build func(kubeconfig string) component) error {
	kubeconfig, err := c.UserKubeconfig(name, "system:"+name, groups...)
	if err != nil {
		return err
	}
	_, err = c.run(ctx, build(kubeconfig))
	return err
}

// run starts a component on a free port and waits until it is ready. Should
// another process take the port first, it tries the next.
func (c *Cluster) run(ctx context.Context, component component) (port int, err error) {
	client := component.probeClient()
	defer client.CloseIdleConnections()
	for attempt := 1; ; attempt++ {
		port, err := freePort(component.address)
		if err != nil {
			return 0, err
		}
		log := layout(c.dir.Path).log(component.name)
		p, err := process.Start(component.name, component.path, component.args(port), log)
		if err != nil {
			return 0, err
		}
		c.processes = append(c.processes, p)
		err = p.WaitReady(ctx, func(ctx context.Context) error { return component.probe(ctx, client, port) })
		if err == nil {
			return port, nil
		}
		if attempt == portAttempts || !portTaken(p) {
			return 0, err
		}
		c.processes = c.processes[:len(c.processes)-1] // it has ended
	}
}

// Config is the configuration of a client that may do everything (a member of
// system:masters). The caller owns the copy.
func (c *Cluster) Config() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// Kubeconfig is the path of a kubeconfig file of the same user as Config. It is
// gone after Stop if the cluster's folder is temporary.
func (c *Cluster) Kubeconfig() string {
	return layout(c.dir.Path).kubeconfig()
}

// User is the configuration of a client that is the user of that name, in those
// groups: it may do what RBAC allows it, which at first is next to nothing.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := c.pki.kubernetes.client(name, groups...)
	if err != nil {
		return nil, err
	}
	return newConfig(c.server, c.pki.kubernetes.certPEM(), pair), nil
}

// Assets are the programs that the cluster was started from.
func (c *Cluster) Assets() Assets { return c.assets }

// Dir is the cluster's folder; its logs are in the folder logs in it.
func (c *Cluster) Dir() string { return c.dir.Path }

// PIDs are the process ids of the programs by component name.
func (c *Cluster) PIDs() map[string]int {
	pids := make(map[string]int, len(c.processes))
	for _, p := range c.processes {
		pids[p.Name] = p.PID()
	}
	return pids
}

// Wait returns nil when ctx ends or the cluster is stopped, and an error when
// one of its programs ends without having been asked to.
func (c *Cluster) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *process.Process)
	for _, p := range c.processes {
		go func() {
			select {
			case <-p.Ended():
				select {
				case ended <- p:
				case <-ctx.Done():
				}
			case <-ctx.Done():
			}
		}()
	}
	select {
	case p := <-ended:
		select {
		case <-c.stopped:
			return nil
		default:
			return p.EndedError()
		}
	case <-c.stopped:
	case <-ctx.Done():
	}
	return nil
}

// Stop ends the programs, the API server and its clients before etcd, and
// removes the cluster's folder if it is temporary. A program that takes too long
// is killed. When it returns, all of them are gone. Calls after the first, also
// concurrent ones, wait for the first and return its result.
func (c *Cluster) Stop() error {
	return c.stop()
}

func (c *Cluster) stopAll() error {
	close(c.stopped)
	var etcd, clients []*process.Process
	for _, p := range c.processes {
		if p.Name == Etcd {
			etcd = append(etcd, p)
		} else {
			clients = append(clients, p)
		}
	}
	err := errors.Join(process.StopAll(clients), process.StopAll(etcd), c.dir.Close())
	if err != nil {
		return fmt.Errorf("stopping the cluster in %s: %w", c.dir.Path, err)
	}
	return nil
}
