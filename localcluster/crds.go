package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	crdPoll       = 50 * time.Millisecond
	crdTimeout    = time.Minute
	yamlLookahead = 4 << 10
	fieldManager  = "localcluster"
)

var crdResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// InstallCRDs applies the custom resource definitions in the files and folders
// given, and returns once all are served. Concurrent calls with the same
// definitions do no harm: server-side apply makes each a no-op but one.
func InstallCRDs(ctx context.Context, config *rest.Config, paths ...string) error {
	crds, err := readCRDs(paths)
	if err != nil {
		return fmt.Errorf("reading CRDs: %w", err)
	}
	if len(crds) == 0 {
		return nil
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, crdTimeout)
	defer cancel()
	for _, crd := range crds {
		_, err := client.Resource(crdResource).Apply(ctx, crd.GetName(), crd, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("installing CRD %s: %w", crd.GetName(), err)
		}
	}
	return waitForCRDs(ctx, config, client, crds)
}

func waitForCRDs(ctx context.Context, config *rest.Config, client dynamic.Interface, crds []*unstructured.Unstructured) error {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("waiting for CRDs: %w", err)
	}
	for _, crd := range crds {
		err := wait.PollUntilContextCancel(ctx, crdPoll, true, func(ctx context.Context) (bool, error) {
			live, err := client.Resource(crdResource).Get(ctx, crd.GetName(), metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if !established(live) {
				return false, nil
			}
			// Discovery follows a moment later, and clients map kinds by it.
			return discovered(discoverer, live)
		})
		if err != nil {
			return fmt.Errorf("waiting for CRD %s to be served: %w", crd.GetName(), err)
		}
	}
	return nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == "Established" && fields["status"] == "True"
	})
}

// discovered tells whether all served versions of the CRD are in discovery.
func discovered(client discovery.DiscoveryInterface, crd *unstructured.Unstructured) (bool, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, ok := version.(map[string]any)
		if !ok || fields["served"] != true {
			continue
		}
		name, _ := fields["name"].(string)
		list, err := client.ServerResourcesForGroupVersion(group + "/" + name)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
			return false, nil
		}
	}
	return true, nil
}

// readCRDs reads the files given, and all YAML files in the folders given.
func readCRDs(paths []string) ([]*unstructured.Unstructured, error) {
	var crds []*unstructured.Unstructured
	for _, path := range paths {
		files, err := yamlFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			found, err := readCRDFile(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			crds = append(crds, found...)
		}
	}
	return crds, nil
}

func yamlFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	return filepath.Glob(filepath.Join(path, "*.yaml"))
}

// readCRDFile leaves out what is no CRD, such as a kustomization in the folder.
func readCRDFile(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, yamlLookahead)
	var crds []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return crds, nil
		case err != nil:
			return nil, err
		case object.GetKind() == "CustomResourceDefinition":
			crds = append(crds, object)
		}
	}
}
