package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layer packs the tree.
func (t *Tree) layer(modified time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	if err := t.pack(&packed, modified); err != nil {
		return nil, fmt.Errorf("packing the image's files: %w", err)
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressedCaching,
	)
	if err != nil {
		return nil, fmt.Errorf("compressing the image's files: %w", err)
	}
	return layer, nil
}

// pack writes the tree as a tar archive, in the order of the paths: a folder
// comes before what is in it.
func (t *Tree) pack(w io.Writer, modified time.Time) error {
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if name == "/" {
			continue // the runtime's own
		}
		e := t.entries[name]
		if err := archive.WriteHeader(e.header(name, modified)); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// stickyBit is that of a mode in a tar archive.
const stickyBit = 0o1000

func (e entry) header(name string, modified time.Time) *tar.Header {
	header := &tar.Header{
		Name:     name[1:],
		Mode:     int64(e.mode.Perm()),
		ModTime:  modified,
		Size:     int64(len(e.content)),
		Linkname: e.target,
	}
	switch e.mode.Type() {
	case fs.ModeDir:
		header.Typeflag = tar.TypeDir
		header.Name += "/"
	case fs.ModeSymlink:
		header.Typeflag = tar.TypeSymlink
	default:
		header.Typeflag = tar.TypeReg
	}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= stickyBit
	}
	return header
}
