package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// newArchive lays out the files of the archive that an image is loaded from.
func newArchive(tag name.Tag, image v1.Image) (*Tree, error) {
	archive := NewTree()
	layers, err := addBlobs(archive, image)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	manifest, err := describeManifest(tag, image, config.Platform())
	if err != nil {
		return nil, err
	}
	configName, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	return archive, errors.Join(
		addJSON(archive, "/oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}),
		addJSON(archive, "/index.json", v1.IndexManifest{
			SchemaVersion: 2,
			MediaType:     types.OCIImageIndex,
			Manifests:     []v1.Descriptor{manifest},
		}),
		addJSON(archive, "/manifest.json", tarball.Manifest{{
			Config:   blobPath(configName),
			RepoTags: []string{commonName(tag)},
			Layers:   layers,
		}}),
	)
}

// addBlobs adds the image's manifest, configuration and layers, and returns the
// paths of the layers.
func addBlobs(archive *Tree, image v1.Image) ([]string, error) {
	manifest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	err = errors.Join(addBlob(archive, manifest, image.RawManifest), addBlob(archive, config, image.RawConfigFile))
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		if err := addBlob(archive, digest, func() ([]byte, error) { return compressed(layer) }); err != nil {
			return nil, err
		}
		paths = append(paths, blobPath(digest))
	}
	return paths, nil
}

func addBlob(archive *Tree, digest v1.Hash, read func() ([]byte, error)) error {
	content, err := read()
	if err != nil {
		return err
	}
	return archive.AddFile("/"+blobPath(digest), 0o644, content)
}

func compressed(layer v1.Layer) ([]byte, error) {
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(content)
}

func blobPath(digest v1.Hash) string {
	return path.Join("blobs", digest.Algorithm, digest.Hex)
}

// describeManifest names the image in the two ways that readers know: the tag
// alone is in the specification, the whole name is what containerd takes.
func describeManifest(tag name.Tag, image v1.Image, platform *v1.Platform) (v1.Descriptor, error) {
	digest, err := image.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	size, err := image.Size()
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{
		MediaType: types.OCIManifestSchema1,
		Size:      size,
		Digest:    digest,
		Platform:  platform,
		Annotations: map[string]string{
			"org.opencontainers.image.ref.name": tag.TagStr(),
			"io.containerd.image.name":          commonName(tag),
		},
	}, nil
}

// commonName is the whole name as Kubernetes and containerd write it: the
// library calls their docker.io by the host that serves it.
func commonName(tag name.Tag) string {
	if rest, ok := strings.CutPrefix(tag.Name(), name.DefaultRegistry+"/"); ok {
		return "docker.io/" + rest
	}
	return tag.Name()
}

func addJSON(archive *Tree, name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	return archive.AddFile(name, 0o644, content)
}
