// Package testplane gives the tests of a package a real API server:
//
//	func TestMain(m *testing.M) { testplane.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		config, namespace := testplane.Config(), testplane.Namespace(t)
//		…
//	}
//
// One control plane is started per test process, with the project's CRDs. When
// the environment variable localcluster.TestKubeconfigEnv is set, the cluster
// that it names is used instead, so that one serves the tests of many packages:
// a test keeps to namespaces of its own and gives cluster-wide objects generated
// names.
package testplane

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"avalonhosting.example/bucketoperator/localcluster"
)

const (
	// cleanupTimeout bounds the request that deletes a test's namespace.
	cleanupTimeout = 30 * time.Second
	// maxNamePrefix leaves room for the suffix that the API server generates.
	maxNamePrefix = 50
)

// current is set once by Main before any test runs.
var current *rest.Config

// Option changes how the cluster is started. Of a cluster that
// localcluster.TestKubeconfigEnv names it changes the CRDs only, by adding some.
type Option func(*localcluster.Options)

// CRDs adds the custom resource definitions in files and folders to the project's.
func CRDs(paths ...string) Option {
	return func(o *localcluster.Options) { o.CRDs = append(o.CRDs, paths...) }
}

// Main runs the tests of a package with a cluster and exits the process. It
// stops the cluster when the tests are done or on SIGINT and SIGTERM; on any
// other end, such as a panic in a test, the cluster is killed along with the
// test process.
func Main(m *testing.M, options ...Option) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run()) // only names are asked for
	}
	os.Exit(run(m, options))
}

func run(m *testing.M, options []Option) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	config, stop, err := connect(ctx, options)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testplane: %v\n", err)
		return 1
	}
	current = config

	done := make(chan int, 1)
	go func() { done <- m.Run() }()
	var code int
	select {
	case code = <-done:
	case <-ctx.Done():
		cancel() // a second signal ends this process, and the cluster with it
		fmt.Fprintln(os.Stderr, "testplane: interrupted, stopping the cluster")
		code = 1
	}
	if err := stop(); err != nil {
		fmt.Fprintf(os.Stderr, "testplane: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// connect finds or starts the cluster and installs the CRDs.
func connect(ctx context.Context, options []Option) (config *rest.Config, stop func() error, err error) {
	crds, err := localcluster.ProjectCRDs()
	if err != nil {
		return nil, nil, err
	}
	opts := localcluster.Options{Progress: os.Stderr, CRDs: []string{crds}}
	for _, option := range options {
		option(&opts)
	}
	if path := os.Getenv(localcluster.TestKubeconfigEnv); path != "" {
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, nil, fmt.Errorf("using the cluster that %s names: %w", localcluster.TestKubeconfigEnv, err)
		}
		config.QPS = -1
		if err := localcluster.InstallCRDs(ctx, config, opts.CRDs...); err != nil {
			return nil, nil, err
		}
		return config, func() error { return nil }, nil
	}

	cluster, err := localcluster.Start(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return cluster.Config(), cluster.Stop, nil
}

// Config is the configuration of a client that may do everything. The caller
// owns the copy. It panics in a package whose TestMain does not call Main.
func Config() *rest.Config {
	if current == nil {
		panic("testplane: no cluster: TestMain must call testplane.Main")
	}
	return rest.CopyConfig(current)
}

// User is the configuration of a client that is the user of that name, in those
// groups, by impersonation: RBAC holds for it as for the real one.
func User(name string, groups ...string) *rest.Config {
	config := Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	return config
}

// Namespace makes a namespace with a name of its own, and returns the name. At
// the test's end it is deleted, without waiting until it is gone.
func Namespace(t testing.TB) string {
	t.Helper()
	return NamespaceOf(t, Config())
}

// NamespaceOf does what Namespace does, in the cluster of the configuration.
func NamespaceOf(t testing.TB, config *rest.Config) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix(t.Name())}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's context is over by now.
		ctx, cancel := context.WithTimeoutCause(context.Background(), cleanupTimeout, errors.New("the API server does not answer"))
		defer cancel()
		if err := client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// namePrefix turns the name of a test into the start of a namespace's name.
func namePrefix(test string) string {
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(test), "-"), "-")
	return strings.TrimRight(name[:min(len(name), maxNamePrefix)], "-") + "-"
}
