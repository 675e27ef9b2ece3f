package v1_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func samples(t *testing.T) string {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "config", "samples")
}

// manifests are the objects in a YAML file.
func manifests(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []*unstructured.Unstructured
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			t.Fatalf("parsing %s: %v", path, err)
		}
		found = append(found, object)
	}
}

func TestTheContractsManifestWorksAsItStands(t *testing.T) {
	t.Parallel()
	found := manifests(t, filepath.Join(samples(t), "storage_v1_storagebucket.yaml"))
	if len(found) != 1 {
		t.Fatalf("the sample holds %d objects, want 1", len(found))
	}
	want := map[string]any{
		"apiVersion": "storage.avalonhosting.example/v1",
		"kind":       "StorageBucket",
		"metadata":   map[string]any{"name": "media-assets"},
		"spec":       map[string]any{"region": "us-east-1", "sizeGB": int64(100), "encrypted": true},
	}
	if diff := cmp.Diff(want, found[0].Object); diff != "" {
		t.Errorf("the sample is not the contract's manifest (-want +got):\n%s", diff)
	}
}

func TestEverySampleIsAccepted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(samples(t), "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, namespace, tried := admin(t), testplane.Namespace(t), map[string]int{}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		for _, object := range manifests(t, file) {
			object.SetNamespace(namespace)
			tried[object.GetKind()]++
			if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Errorf("%s: %s %s was refused: %v", filepath.Base(file), object.GetKind(), object.GetName(), err)
			}
			if object.GroupVersionKind().Group == storagev1.GroupName && object.GetAPIVersion() != storagev1.GroupVersion.String() {
				t.Errorf("%s is of %s", filepath.Base(file), object.GetAPIVersion())
			}
		}
	}
	if tried["StorageBucket"] == 0 || tried["BucketProviderConfig"] == 0 {
		t.Errorf("the samples hold %v", tried)
	}
}
