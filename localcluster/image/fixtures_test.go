package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// listed is what an image holds at a path.
type listed struct {
	Type    byte
	Mode    int64
	Content string
	Link    string
}

// newTree makes a tree by functions that may fail.
func newTree(t *testing.T, add ...func(*Tree) error) *Tree {
	t.Helper()
	tree := NewTree()
	for _, f := range add {
		if err := f(tree); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func file(name, content string) func(*Tree) error {
	return func(tree *Tree) error { return tree.AddFile(name, 0o644, []byte(content)) }
}

func link(name, target string) func(*Tree) error {
	return func(tree *Tree) error { return tree.AddLink(name, target) }
}

func mustBuild(t *testing.T, tree *Tree, config Config) v1.Image {
	t.Helper()
	image, err := Build(tree, config)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func digest(t *testing.T, image v1.Image) string {
	t.Helper()
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// headers are those of the image's one layer, in its order.
func headers(t *testing.T, image v1.Image) (headers []*tar.Header, contents [][]byte) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("the image has %d layers, want 1", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	return readTar(t, content)
}

func readTar(t *testing.T, r io.Reader) (headers []*tar.Header, contents [][]byte) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, archive); err != nil {
			t.Fatal(err)
		}
		headers, contents = append(headers, header), append(contents, content.Bytes())
	}
}

// list tells what the image holds, by the path in the archive.
func list(t *testing.T, image v1.Image) map[string]listed {
	t.Helper()
	entries := map[string]listed{}
	headers, contents := headers(t, image)
	for i, h := range headers {
		entries[h.Name] = listed{Type: h.Typeflag, Mode: h.Mode, Content: string(contents[i]), Link: h.Linkname}
	}
	return entries
}
