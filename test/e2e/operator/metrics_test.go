package operator_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// memoryLimit is nine tenths of the 256 MiB of config/manager/manager.yaml.
const memoryLimit = "\ngo_gc_gomemlimit_bytes 2.4159191e+08\n"

// metrics asks for the metrics as Prometheus does: over TLS, at the Service,
// with the token of a ServiceAccount.
func (s *suite) metrics(t *testing.T) {
	testnode.NeedsOwnNode(t, "reaching a Service from the test")
	namespace := testnode.Namespace(t)
	s.create(t, namespace, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}})

	service := &corev1.Service{}
	name := client.ObjectKey{Namespace: installation.Namespace, Name: "bucketoperator-controller-manager-metrics-service"}
	if err := s.client.Get(t.Context(), name, service); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("https://%s:%d/metrics", service.Spec.ClusterIP, service.Spec.Ports[0].Port)
	for token, want := range map[string]int{
		s.metricsReader(t, namespace):   http.StatusOK,
		s.token(t, namespace, "nobody"): http.StatusForbidden,
		"":                              http.StatusUnauthorized,
	} {
		testnode.Eventually(t, fmt.Sprintf("the answer is %d", want), func(ctx context.Context) error {
			code, body, err := get(ctx, url, token)
			switch {
			case err != nil:
				return err
			case code != want:
				return fmt.Errorf("it is %d", code)
			case code == http.StatusOK && !strings.Contains(body, "controller_runtime_reconcile_total"):
				return fmt.Errorf("it holds no metrics: %.200s", body)
			case code == http.StatusOK && !strings.Contains(body, memoryLimit):
				t.Errorf("the Go runtime does not keep to nine tenths of the container's memory limit: no %s", memoryLimit)
			}
			return nil
		})
	}
	if _, _, err := get(t.Context(), strings.Replace(url, "https", "http", 1), ""); err == nil {
		if code, _, _ := get(t.Context(), strings.Replace(url, "https", "http", 1), ""); code == http.StatusOK {
			t.Error("metrics are served without TLS")
		}
	}
}

// metricsReader is the token of an account that may read the metrics.
func (s *suite) metricsReader(t *testing.T, namespace string) string {
	t.Helper()
	s.create(t, namespace, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "bucketoperator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "prometheus"}},
	}
	s.create(t, "", binding)
	t.Cleanup(func() { _ = s.client.Delete(context.Background(), binding) }) // the test's context is over
	return s.token(t, namespace, "prometheus")
}

func (s *suite) token(t *testing.T, namespace, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	holder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := s.client.SubResource("token").Create(t.Context(), holder, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// get asks one of the pods behind the Service, over a connection of its own.
func get(ctx context.Context, url, token string) (code int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the operator's certificate is its own
		DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}
