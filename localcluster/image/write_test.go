package image

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const reference = "registry.example.com/program:v1"

func archiveOf(t *testing.T, reference string, image v1.Image) []byte {
	t.Helper()
	var archive bytes.Buffer
	if err := Write(&archive, reference, image); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// archived are the files of the archive by name.
func archived(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	headers, contents := readTar(t, bytes.NewReader(archive))
	for i, h := range headers {
		files[h.Name] = contents[i]
	}
	return files
}

func decode[T any](t *testing.T, content []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(content, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheArchiveIsAnOCILayout(t *testing.T) {
	t.Parallel()
	image := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	files := archived(t, archiveOf(t, reference, image))

	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	index := decode[v1.IndexManifest](t, files["index.json"])
	if len(index.Manifests) != 1 {
		t.Fatalf("the index names %d images, want 1", len(index.Manifests))
	}
	named := index.Manifests[0]
	if got := named.Annotations["io.containerd.image.name"]; got != reference {
		t.Errorf("the image is called %q, want %q", got, reference)
	}
	if got := named.Annotations["org.opencontainers.image.ref.name"]; got != "v1" {
		t.Errorf("the image's tag is %q, want v1", got)
	}
	manifest := decode[v1.Manifest](t, files[blobPath(named.Digest)])
	for _, part := range append(manifest.Layers, manifest.Config, named) {
		content, there := files[blobPath(part.Digest)]
		if hash, _, err := v1.SHA256(bytes.NewReader(content)); !there || err != nil || hash != part.Digest || int64(len(content)) != part.Size {
			t.Errorf("%s, of %d bytes: there: %t, with digest %s and %d bytes, %v", part.Digest, part.Size, there, hash, len(content), err)
		}
	}
}

func TestTheArchiveIsReadByProgramsThatKnowDockersFormatOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "image.tar")
	built := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	if err := WriteFile(path, reference, built); err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(read); err != nil {
		t.Error(err)
	}
	want, _ := built.ConfigName()
	if got, err := read.ConfigName(); err != nil || got != want {
		t.Errorf("the image read is %s, %v; want %s", got, err, want)
	}
}

func TestTheSameImageGivesTheSameArchive(t *testing.T) {
	t.Parallel()
	image := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	again := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	if !bytes.Equal(archiveOf(t, reference, image), archiveOf(t, reference, again)) {
		t.Error("two archives of the same image differ")
	}
}

func TestAnImageOfDockerHubIsCalledAsKubernetesCallsIt(t *testing.T) {
	t.Parallel()
	image := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	const want = "docker.io/library/redis:7"
	files := archived(t, archiveOf(t, want, image))
	if got := decode[v1.IndexManifest](t, files["index.json"]).Manifests[0].Annotations["io.containerd.image.name"]; got != want {
		t.Errorf("in index.json the image is called %q, want %q", got, want)
	}
	if got := decode[tarball.Manifest](t, files["manifest.json"])[0].RepoTags; len(got) != 1 || got[0] != want {
		t.Errorf("in manifest.json the image is called %q, want %q", got, want)
	}
}

func TestAnImageNeedsAWholeName(t *testing.T) {
	t.Parallel()
	image := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	for _, reference := range []string{"registry.example.com/program", "program:v1", "registry.example.com/Program:v1", ""} {
		if err := Write(&bytes.Buffer{}, reference, image); err == nil || !strings.Contains(err.Error(), "writing the image") {
			t.Errorf("Write under the name %q: got error %v", reference, err)
		}
	}
}

func TestAFailedWriteLeavesTheFileAsItWas(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "image.tar")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	image := mustBuild(t, newTree(t, file("/program", "code")), anyEntrypoint)
	if err := WriteFile(path, "no tag", image); err == nil {
		t.Error("no error, although the name is none")
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "before" {
		t.Errorf("the file holds %q, %v", content, err)
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("the folder holds %v, want the file alone", entries)
	}
}
