package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/programs"
	"avalonhosting.example/bucketoperator/localcluster"
)

// world is all that runs beside the operator, and where it is.
type world struct {
	options
	dir     string
	root    string // of the checkout
	cluster *localcluster.Cluster
	admin   client.WithWatch
	audit   *auditLog
	// provider answers at once, dead never does, slow after a while; it is
	// started when it is needed.
	provider, dead, slow *programs.Provider
	operators            kubeconfig
	loaders              kubeconfig
	sample               string // the file that tells the limit what to write
	namespaces           int
}

// newWorld builds the programs and starts all but the operator.
func newWorld(ctx context.Context, o options) (w *world, err error) {
	w = &world{options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.root, err = localcluster.ModuleRoot(); err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp("", "bucketoperator-bench-"); err != nil {
		return nil, err
	}
	if o.logs != "" {
		if err := os.MkdirAll(o.logs, 0o755); err != nil {
			return nil, err
		}
	}
	w.say("Building the operator and the provider")
	if err := programs.Build(ctx, w.root, w.dir); err != nil {
		return nil, err
	}
	w.say("Starting a control plane")
	if err := w.startCluster(ctx); err != nil {
		return nil, err
	}
	if err := w.grant(ctx); err != nil {
		return nil, err
	}
	if w.provider, err = w.startProvider(ctx, "provider", "--latency="+o.latency.String()); err != nil {
		return nil, err
	}
	if w.dead, err = w.startProvider(ctx, "dead-provider"); err != nil {
		return nil, err
	}
	return w, hang(ctx, w.dead)
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

// log is the path of a log. Those in a folder that a flag names are kept.
func (w *world) log(name string) string { return filepath.Join(cmp.Or(w.logs, w.dir), name+".log") }

func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.progress, "==> "+format+"\n", args...)
}

func (w *world) startCluster(ctx context.Context) error {
	crds, err := localcluster.ProjectCRDs()
	if err != nil {
		return err
	}
	log := w.log("audit")
	w.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: w.file("cluster"), Progress: w.progress, CRDs: []string{crds}, AuditLog: log, Fsync: w.fsync,
		// What it collects would be counted as the operator's load.
		NoControllerManager: true,
	})
	if err != nil {
		return err
	}
	if w.admin, err = client.NewWithWatch(w.cluster.Config(), client.Options{Scheme: controllers.NewScheme()}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	w.audit, err = openAuditLog(log, w.admin)
	return err
}

// namespace makes a namespace of its own for a run.
func (w *world) namespace(ctx context.Context) (string, error) {
	w.namespaces++
	name := fmt.Sprintf("bench-%d", w.namespaces)
	err := w.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil {
		return "", fmt.Errorf("making a namespace: %w", err)
	}
	return name, nil
}

// user makes the kubeconfig of a ServiceAccount: the API server's fairness
// treats the operator and its limit alike.
func (w *world) user(namespace, account string) (kubeconfig, error) {
	k := kubeconfig{user: programs.AccountUser(namespace, account), path: w.file(account + ".kubeconfig")}
	return k, programs.WriteAccountKubeconfig(w.cluster, namespace, account, k.path)
}

// close stops all, and removes all.
func (w *world) close() error {
	var errs []error
	for _, p := range []*programs.Provider{w.provider, w.dead, w.slow} {
		if p != nil {
			errs = append(errs, p.Program.Stop())
		}
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	return errors.Join(errs...)
}
