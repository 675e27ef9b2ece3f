package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"avalonhosting.example/bucketoperator/internal/programs"
)

// loadAccount is who makes the limit's requests.
const loadAccount = "bench-load"

// kubeconfig is a file, and the user that it is of.
type kubeconfig struct{ user, path string }

// grant gives the operator the permissions of config/rbac, and the limit all.
func (w *world) grant(ctx context.Context) error {
	for _, path := range []string{
		"default/namespace.yaml", "rbac/role.yaml", "rbac/role_binding.yaml",
		"rbac/leader_election_role.yaml", "rbac/leader_election_role_binding.yaml",
	} {
		if err := w.create(ctx, filepath.Join(w.root, "config", filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	var err error
	if w.operators, err = w.user(programs.OperatorNamespace, programs.OperatorAccount); err != nil {
		return err
	}
	if w.loaders, err = w.user(metav1.NamespaceDefault, loadAccount); err != nil {
		return err
	}
	err = w.admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: loadAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.loaders.user}},
	})
	if err != nil {
		return fmt.Errorf("giving the limit its permissions: %w", err)
	}
	return nil
}

// create creates the objects of a manifest.
func (w *world) create(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", path, err)
		case len(object.Object) == 0:
			continue
		}
		if err := w.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating what is in %s: %w", path, err)
		}
	}
}
