package localcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"avalonhosting.example/bucketoperator/localcluster/internal/workdir"
)

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// makeNamespace makes a namespace and leaves its deletion to the test, if it
// matters: the cluster is gone at the end.
func makeNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func TestStopEndsAllProgramsAndRemovesTheFolder(t *testing.T) {
	t.Parallel()
	cluster := start(t, Options{Scheduler: true})
	pids := cluster.PIDs()
	names := make([]string, 0, len(pids))
	for name, pid := range pids {
		names = append(names, name)
		if !running(pid) {
			t.Errorf("%s (process %d) is not running before Stop", name, pid)
		}
	}
	want := []string{Etcd, APIServer, ControllerManager, Scheduler}
	if diff := cmp.Diff(want, names, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	info, err := os.Stat(cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %o, want 600", info.Mode().Perm())
	}

	for range 2 { // the second call changes nothing
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for name, pid := range pids {
		if running(pid) {
			t.Errorf("%s (process %d) is running after Stop", name, pid)
		}
	}
	if _, err := os.Stat(cluster.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder %s is there after Stop (%v)", cluster.Dir(), err)
	}
}

func TestStopEndsEtcdLast(t *testing.T) {
	t.Parallel()
	cluster := start(t, Options{})
	stillRunning := make(chan []string, 1)
	go func() {
		<-cluster.processes[0].Ended()
		var names []string
		for _, p := range cluster.processes[1:] {
			select {
			case <-p.Ended():
			default:
				names = append(names, p.Name)
			}
		}
		stillRunning <- names
	}()
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if names := <-stillRunning; len(names) > 0 {
		t.Errorf("etcd ended before %v", names)
	}
	if err := cluster.Wait(t.Context()); err != nil {
		t.Errorf("Wait takes an ordered stop for a failure: %v", err)
	}
}

func TestOpenWatchesDoNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	cluster := start(t, Options{NoControllerManager: true})
	watch, err := clientFor(t, cluster.Config()).CoreV1().ConfigMaps(metav1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.processes[1].Result(); err != nil {
		t.Errorf("the API server did not end by itself: %v", err)
	}
}

func TestClustersSideBySideAreApart(t *testing.T) {
	t.Parallel()
	first, second := sharedCluster(t), start(t, Options{NoControllerManager: true})
	namespace := makeNamespace(t, clientFor(t, first.Config()))
	_, err := clientFor(t, second.Config()).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the second cluster answers %v for a namespace of the first, want not found", err)
	}

	// A client of one is nobody to the other, even when it asks the right port.
	stranger := first.Config()
	stranger.Host = second.Config().Host
	stranger.CAData = second.Config().CAData
	_, err = clientFor(t, stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("the second cluster answers the first's admin %v, want unauthorized", err)
	}
}

func TestDeletedNamespaceGoesAway(t *testing.T) {
	t.Parallel()
	client := clientFor(t, sharedCluster(t).Config())
	namespace := makeNamespace(t, client)
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestObjectsOfADeletedCustomOwnerAreCollected(t *testing.T) {
	t.Parallel()
	config := sharedCluster(t).Config()
	client := clientFor(t, config)
	widgetClient, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := makeNamespace(t, client)
	widgets := widgetClient.Resource(schema.GroupVersionResource{Group: "localcluster.example", Version: "v1", Resource: "widgets"}).Namespace(namespace)
	owner, err := widgets.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "localcluster.example/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"name": "owner"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name:            "owned",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())},
	}}
	if _, err := client.CoreV1().Secrets(namespace).Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := widgets.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the owned secret is gone", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Secrets(namespace).Get(ctx, "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
}

func TestUserMayDoOnlyWhatRBACAllows(t *testing.T) {
	t.Parallel()
	cluster := sharedCluster(t)
	config, err := cluster.User("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	jane := clientFor(t, config)
	review, err := jane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := review.Status.UserInfo.Username; got != "jane" {
		t.Errorf("the API server knows jane as %q", got)
	}
	if diff := cmp.Diff([]string{"readers", "system:authenticated"}, review.Status.UserInfo.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	_, err = jane.CoreV1().Secrets(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing secrets without a role: %v, want forbidden", err)
	}
}

func TestKubeconfigIsTheAdmins(t *testing.T) {
	t.Parallel()
	config, err := clientcmd.BuildConfigFromFlags("", sharedCluster(t).Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	makeNamespace(t, clientFor(t, config))
}

func TestDataInAGivenFolderOutlivesTheCluster(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: filepath.Join(t.TempDir(), "cluster"), NoControllerManager: true}
	first := start(t, opts)
	namespace := makeNamespace(t, clientFor(t, first.Config()))

	if _, err := Start(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "another cluster runs in") {
		t.Errorf("a second cluster in the same folder: %v, want an error that says so", err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, opts)
	if _, err := clientFor(t, second.Config()).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace made before the stop: %v", err)
	}
}

func TestAuditLogHoldsEachRequestOnce(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster := start(t, Options{NoControllerManager: true, AuditLog: log})
	config, err := cluster.User("counted", mastersGroup)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, config)
	const requests = 3
	for range requests {
		makeNamespace(t, client)
	}
	// The log is complete when the server has ended.
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := countCreations(t, log, "counted"); got != requests {
		t.Errorf("the audit log holds %d creations, want %d", got, requests)
	}
}

func countCreations(t *testing.T, path, user string) int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb string
			User struct{ Username string }
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.User.Username == user && entry.Verb == "create" {
			count++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return count
}

func TestFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	t.Parallel()
	temp := filepath.Join(t.TempDir(), "cluster")
	_, err := Start(t.Context(), Options{Dir: temp, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended") || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("error %v, want one that names kube-apiserver and holds its complaint", err)
	}
	// The lock is free again.
	dir, err := workdir.Open(temp)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Error(err)
	}
}

func TestCancelledStartFailsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	if _, err := Binaries(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, Options{Dir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestWaitTellsWhichProgramEnded(t *testing.T) {
	t.Parallel()
	cluster := start(t, Options{NoControllerManager: true})
	if err := syscall.Kill(cluster.processes[1].PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: signal: killed") {
		t.Errorf("error %v, want one that says that kube-apiserver was killed", err)
	}
}

func TestTakenPortIsGivenUpForAnother(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(sharedCluster(t).server)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	cluster := start(t, Options{NoControllerManager: true})
	other, err := newPKI(t.TempDir(), loopback)
	if err != nil {
		t.Fatal(err)
	}
	etcd := etcdComponent(cluster.assets.Etcd, t.TempDir(), other.files, false)
	etcd.name = "second-etcd"
	args, starts := etcd.args, 0
	etcd.args = func(port int) []string {
		starts++
		if starts == 1 {
			port = taken
		}
		return args(port)
	}
	if _, err := cluster.run(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	if starts != 2 {
		t.Errorf("etcd was started %d times, want 2", starts)
	}
}
