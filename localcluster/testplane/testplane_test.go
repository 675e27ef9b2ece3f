package testplane_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// helperEnv tells TestHelper, in a test process of its own, how to end.
const (
	helperEnv = "TESTPLANE_TEST_HELPER"
	panics    = "panics"
	blocks    = "blocks"
)

const (
	poll    = 50 * time.Millisecond
	timeout = 2 * time.Minute
)

func TestMain(m *testing.M) {
	testplane.Main(m, testplane.CRDs(filepath.Join("..", "testdata", "widgets.yaml")))
}

func TestKindsOfTheProjectAndOfTheTestsAreServed(t *testing.T) {
	t.Parallel()
	client := discovery.NewDiscoveryClientForConfigOrDie(testplane.Config())
	kinds := map[string]bool{}
	for _, group := range []string{"storage.avalonhosting.example/v1", "localcluster.example/v1"} {
		list, err := client.ServerResourcesForGroupVersion(group)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			kinds[resource.Kind] = true
		}
	}
	for _, kind := range []string{"StorageBucket", "BucketProviderConfig", "Widget"} {
		if !kinds[kind] {
			t.Errorf("%s is not served", kind)
		}
	}
}

func TestNamespacesAreApartAndGoWithTheirTest(t *testing.T) {
	t.Parallel()
	client := kubernetes.NewForConfigOrDie(testplane.Config())
	var names []string
	t.Run("With a very long name/of many parts that as a whole is no label", func(t *testing.T) {
		names = append(names, testplane.Namespace(t), testplane.Namespace(t))
		for _, name := range names {
			if _, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	if names[0] == names[1] {
		t.Errorf("two namespaces have the name %s", names[0])
	}
	for _, name := range names {
		err := wait.PollUntilContextTimeout(t.Context(), poll, timeout, true, func(ctx context.Context) (bool, error) {
			_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			t.Errorf("waiting until namespace %s is gone: %v", name, err)
		}
	}
}

func TestUserIsBoundByRBAC(t *testing.T) {
	t.Parallel()
	jane := kubernetes.NewForConfigOrDie(testplane.User("jane"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hers"}}
	_, err := jane.CoreV1().Secrets(testplane.Namespace(t)).Create(t.Context(), secret, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("creating a secret without a role: %v, want forbidden", err)
	}
}

// TestHelper is run by other tests, in a process of its own. Otherwise it does
// nothing.
func TestHelper(t *testing.T) {
	how := os.Getenv(helperEnv)
	if how == "" {
		return
	}
	fmt.Fprintln(os.Stdout, testplane.Config().Host)
	if how == panics {
		panic("as asked")
	}
	<-t.Context().Done() // that is never
}

func TestClusterEndsWithItsTestProcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		how      string
		signal   os.Signal // sent once the cluster is up
		clearsUp bool
	}{
		"a test panics": {how: panics},
		"SIGINT":        {how: blocks, signal: os.Interrupt, clearsUp: true},
		"SIGTERM":       {how: blocks, signal: syscall.SIGTERM, clearsUp: true},
		"SIGKILL":       {how: blocks, signal: os.Kill},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			helper := exec.Command(os.Args[0], "-test.run=^TestHelper$")
			// Empty means unset: the helper is to start a cluster of its own.
			helper.Env = append(os.Environ(), helperEnv+"="+test.how, "TMPDIR="+temp, localcluster.TestKubeconfigEnv+"=")
			output, err := helper.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := helper.Start(); err != nil {
				t.Fatal(err)
			}
			host := readHost(t, bufio.NewReader(output))
			if test.signal != nil {
				if err := helper.Process.Signal(test.signal); err != nil {
					t.Error(err)
				}
			}
			if err := helper.Wait(); err == nil {
				t.Error("the test process succeeded, want a failure")
			}

			waitUntilClosed(t, host)
			left, err := os.ReadDir(temp)
			if err != nil {
				t.Fatal(err)
			}
			if test.clearsUp && len(left) > 0 {
				t.Errorf("left in the temporary folder: %v", left)
			}
		})
	}
}

func readHost(t *testing.T, output *bufio.Reader) string {
	t.Helper()
	line, err := output.ReadString('\n')
	if err != nil {
		t.Errorf("the helper did not say where its cluster is: %v", err)
	}
	address, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		t.Error(err)
		return ""
	}
	return address.Host
}

func waitUntilClosed(t *testing.T, address string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), poll, timeout, true, func(ctx context.Context) (bool, error) {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return true, nil //nolint:nilerr // that is what it waits for
		}
		return false, connection.Close()
	})
	if err != nil {
		t.Errorf("waiting until nothing listens on %s: %v", address, err)
	}
}

func TestProcessesShareTheClusterThatTheEnvironmentNames(t *testing.T) {
	t.Parallel()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	// All install the same CRDs at the same time.
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			helper := exec.Command(os.Args[0], "-test.run=^TestProjectKindsAreServed$")
			helper.Env = cluster.Environ()
			if output, err := helper.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
	running.Wait()
	if _, err := kubernetes.NewForConfigOrDie(cluster.Config()).Discovery().ServerVersion(); err != nil {
		t.Errorf("the cluster after its users are gone: %v", err)
	}
}
