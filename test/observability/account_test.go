package observability_test

import (
	"context"
	"errors"
	"os"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// account makes a ServiceAccount, with no rights, and returns a token of it.
func account(t *testing.T, namespace, name string) (token string) {
	t.Helper()
	accounts := clientset(t).CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// metricsReader makes a ServiceAccount that has the role for those who collect
// the metrics, as it is in config/rbac, and returns a token of it.
func metricsReader(t *testing.T, namespace, name string) (token string) {
	t.Helper()
	token = account(t, namespace, name)
	text, err := os.ReadFile(inModule(t, "config", "rbac", "metrics_reader_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(text, role); err != nil {
		t.Fatal(err)
	}
	role.GenerateName, role.Name = role.Name+"-", "" // the cluster may serve other tests, too
	rbac := clientset(t).RbacV1()
	role, err = rbac.ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding, err := rbac.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: role.GenerateName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		err := errors.Join(
			rbac.ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}),
			rbac.ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{}))
		if err != nil {
			t.Error(err)
		}
	})
	return token
}

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(testplane.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}
