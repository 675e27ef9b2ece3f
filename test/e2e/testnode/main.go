package testnode

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"avalonhosting.example/bucketoperator/localcluster"
)

// clusterEnv set to existingCluster runs the tests on the cluster that the
// kubeconfig names. Without it they run inside a node alone, and not on whatever
// cluster happens to be current.
const (
	clusterEnv      = "BUCKETOPERATOR_E2E_CLUSTER"
	existingCluster = "existing"
)

// current is set once by Main before any test runs.
var current *rest.Config

// Main runs the tests of a package and exits the process. Where there is no
// cluster to run them on, it says so, and that is no failure: `go test ./...`
// comes by here, too.
func Main(m *testing.M) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if flag.Lookup("test.list").Value.String() != "" {
		os.Exit(m.Run()) // only names are asked for
	}
	if !own() && os.Getenv(clusterEnv) != existingCluster {
		fmt.Fprintln(os.Stderr, "testnode: no test was run: they need a cluster with nodes, see `make e2e`")
		os.Exit(0)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testnode: reading the kubeconfig:", err)
		os.Exit(1)
	}
	config.QPS = -1 // the API server has limits of its own
	current = config
	if !own() {
		if err := refuseUsed(config); err != nil {
			fmt.Fprintln(os.Stderr, "testnode:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// own tells whether the tests run inside a node of the project's own.
func own() bool { return os.Getenv(localcluster.NodeEnv) != "" }

// NeedsOwnNode skips a test on any cluster but the project's own node, and says
// what it wants to do there.
func NeedsOwnNode(t testing.TB, what string) {
	t.Helper()
	if !own() {
		t.Skipf("%s is done to the project's own node alone: run it by `make e2e`, without CLUSTER=existing", what)
	}
}

// Config is the configuration of a client that is who the kubeconfig says, on the
// project's own node an administrator. The caller owns the copy. It panics in a
// package whose TestMain does not call Main.
func Config() *rest.Config {
	if current == nil {
		panic("testnode: no cluster: TestMain must call testnode.Main")
	}
	return rest.CopyConfig(current)
}

// Client is a client of Config.
func Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(Config())
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client
}
