package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	manifests "avalonhosting.example/bucketoperator/config"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// freeAddress is one on loopback that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(testplane.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// runOperator starts an operator of one namespace, with its lease there, and
// waits until it is ready. It returns where its probes are.
func runOperator(t *testing.T, namespace string, flags ...string) (p *program, probes string) {
	t.Helper()
	probes = freeAddress(t)
	p = newProgram(t, append([]string{
		kubeconfig(t, testplane.Config()), "--namespaces=" + namespace,
		"--leader-elect", "--leader-election-namespace=" + namespace,
		"--health-probe-bind-address=" + probes, "--metrics-bind-address=0",
	}, flags...)...)
	p.start(t)
	testkit.Eventually(t, func(context.Context) string {
		if status, _, err := get("http://"+probes+"/readyz", ""); err != nil || status != http.StatusOK {
			return fmt.Sprintf("readiness: %d %v; it said:\n%s", status, err, p.stderr.String())
		}
		return ""
	})
	return p, probes
}

// get makes a request, with a bearer token if there is one, to a server whose
// certificate may be its own.
func get(url, token string) (status int, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// leader is who holds the lease in a namespace; empty when nobody does.
func leader(t *testing.T, client kubernetes.Interface, namespace string) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestSIGTERMEndsInOrderAndGivesBackTheLease(t *testing.T) {
	t.Parallel()
	client, namespace := clientset(t), testplane.Namespace(t)
	p, probes := runOperator(t, namespace)
	testkit.Eventually(t, func(context.Context) string {
		if leader(t, client, namespace) == "" {
			return "nobody leads"
		}
		return ""
	})
	if status, body, err := get("http://"+probes+"/healthz", ""); err != nil || status != http.StatusOK {
		t.Errorf("health: %d %q %v, want 200", status, body, err)
	}
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != 0 {
		t.Errorf("exit code %d, want 0; it said:\n%s", code, p.stderr.String())
	}
	if plain := p.plainLines(); len(plain) > 0 {
		t.Errorf("it said %q, want log entries alone", plain)
	}
	if held := leader(t, client, namespace); held != "" {
		t.Errorf("the lease is still held by %s", held)
	}
}

func TestLostLeaseEndsTheProcessWithOneLine(t *testing.T) {
	t.Parallel()
	client, namespace := clientset(t), testplane.Namespace(t)
	p, _ := runOperator(t, namespace,
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=250ms")
	testkit.Eventually(t, func(context.Context) string {
		if leader(t, client, namespace) == "" {
			return "nobody leads"
		}
		return ""
	})
	takeLease(t, client, namespace)
	if code := p.end(t); code != exitFailure {
		t.Errorf("exit code %d, want %d", code, exitFailure)
	}
	if plain := p.plainLines(); len(plain) != 1 || !strings.Contains(plain[0], "leader election lost") {
		t.Errorf("it said %q, want one line that the lease is lost", plain)
	}
}

func takeLease(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	const patch = `{"spec":{"holderIdentity":"another","leaseDurationSeconds":600}}`
	if _, err := client.CoordinationV1().Leases(namespace).Patch(t.Context(), leaseName, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestStandbyIsReadyAndTakesOverFromALeaderThatWasKilled(t *testing.T) {
	t.Parallel()
	client, namespace := clientset(t), testplane.Namespace(t)
	first, _ := runOperator(t, namespace)
	var held string
	testkit.Eventually(t, func(context.Context) string {
		if held = leader(t, client, namespace); held == "" {
			return "nobody leads"
		}
		return ""
	})
	second, _ := runOperator(t, namespace)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func(context.Context) string {
		if now := leader(t, client, namespace); now == held {
			return "the dead leader still leads; the standby said:\n" + second.stderr.String()
		}
		return ""
	})
}

func TestRoleInTheNamespaceIsEnoughForAnOperatorOfThatNamespace(t *testing.T) {
	t.Parallel()
	client, namespace := clientset(t), testplane.Namespace(t)
	const user = "narrow-operator"
	needs, err := controllerNeeds(manifests.ManagerRole, controllers.Definitions, nil)
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, n := range append(needs, leaderNeeds...) {
		rule := rbacv1.PolicyRule{APIGroups: []string{n.group}, Resources: []string{n.resource}, Verbs: n.verbs}
		if n.subresource != "" {
			rule.Resources = []string{n.resource + "/" + n.subresource}
		}
		if n.name != "" {
			rule.ResourceNames = []string{n.name}
		}
		rules = append(rules, rule)
	}
	meta := metav1.ObjectMeta{Name: "operator"}
	_, roleErr := client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	_, bindingErr := client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err := errors.Join(roleErr, bindingErr); err != nil {
		t.Fatal(err)
	}

	config := kubeconfig(t, testplane.User(user, "system:authenticated"))
	// The last --kubeconfig counts.
	p, _ := runOperator(t, namespace, config)
	if strings.Contains(p.stderr.String(), "left out") {
		t.Errorf("it leaves a namespace out:\n%s", p.stderr.String())
	}
	// A tenant who takes the operator's rights, or deletes the namespace, harms nobody else.
	address := freeAddress(t)
	p, _ = runOperator(t, namespace, config, "--namespaces=elsewhere,"+namespace, "--metrics-bind-address="+address, "--metrics-secure=false")
	eventuallyServed(t, address, "bucketoperator_namespaces_left_out 1")
	said := p.stderr.String()
	for _, want := range []string{"left out", `"namespace":"elsewhere"`, "secrets in namespace elsewhere"} {
		if !strings.Contains(said, want) {
			t.Errorf("it says no %q:\n%s", want, said)
		}
	}
	newProgram(t, config, "--namespaces=elsewhere,nowhere", "--metrics-bind-address=0").
		expectRefusal(t, exitFailure, "user "+user+" may not", "secrets in namespace elsewhere", "secrets in namespace nowhere")
}

func TestMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	t.Parallel()
	client, namespace := clientset(t), testplane.Namespace(t)
	address := freeAddress(t)
	p, _ := runOperator(t, namespace, "--metrics-bind-address="+address)
	url := "https://" + address + "/metrics"

	allowMetrics(t, client, namespace, "scraper")
	for _, test := range []struct {
		whose, token string
		want         int
	}{
		{"no", "", http.StatusUnauthorized},
		{"a stranger's", accountToken(t, client, namespace, "stranger"), http.StatusForbidden},
		{"the scraper's", accountToken(t, client, namespace, "scraper"), http.StatusOK},
	} {
		// The server, and what was allowed, may take a moment.
		testkit.Eventually(t, func(context.Context) string {
			if status, _, err := get(url, test.token); err != nil || status != test.want {
				return fmt.Sprintf("with %s token: %d %v, want %d", test.whose, status, err, test.want)
			}
			return ""
		})
	}
	if status, _, err := get(url, "canary"); err != nil || status == http.StatusOK {
		t.Errorf("with a made-up token: %d %v, want a refusal", status, err)
	}
	if strings.Contains(p.stderr.String(), "canary") {
		t.Errorf("it logged a token:\n%s", p.stderr.String())
	}
}

func TestMetricsTellOfTheWork(t *testing.T) {
	t.Parallel()
	mock, err := mockprovider.New(mockprovider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mock)
	t.Cleanup(server.Close)
	namespace, address := testplane.Namespace(t), freeAddress(t)
	runOperator(t, namespace, "--metrics-bind-address="+address, "--metrics-secure=false", "--default-provider-endpoint="+server.URL)
	buckets, err := crclient.New(testplane.Config(), crclient.Options{Scheme: controllers.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	bucket := testkit.Bucket("photos", testkit.InNamespace(namespace))
	if err := buckets.Create(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	eventuallyServed(t, address,
		`bucketoperator_objects{kind="StorageBucket",ready="True",reason="Available"} 1`,
		`bucketoperator_time_to_ready_seconds_count{kind="StorageBucket"} 1`,
		`bucketoperator_provider_call_duration_seconds_count{code="201",operation="create",provider_type="HTTP"} 1`,
		`controller_runtime_reconcile_total{controller="storagebucket"`,
		`controller_runtime_reconcile_total{controller="bucketproviderconfig"`,
		`workqueue_depth{`, `leader_election_master_status{`)
	if err := buckets.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	eventuallyServed(t, address, `bucketoperator_time_in_deletion_seconds_count{kind="StorageBucket"} 1`)
}

func eventuallyServed(t *testing.T, address string, names ...string) {
	t.Helper()
	testkit.Eventually(t, func(context.Context) string {
		status, body, err := get("http://"+address+"/metrics", "")
		if err != nil || status != http.StatusOK {
			return fmt.Sprintf("scraping: %d %v", status, err)
		}
		for _, name := range names {
			if !strings.Contains(body, name) {
				return "the metrics lack " + name + " in:\n" + body
			}
		}
		return ""
	})
}

// accountToken makes a ServiceAccount and returns a token of it.
func accountToken(t *testing.T, client kubernetes.Interface, namespace, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// allowMetrics gives a ServiceAccount the right that config/rbac's metrics reader has.
func allowMetrics(t *testing.T, client kubernetes.Interface, namespace, account string) {
	t.Helper()
	role, err := client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-test-"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := errors.Join(
			client.RbacV1().ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}),
			client.RbacV1().ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{}))
		if err != nil {
			t.Error(err)
		}
	})
}
