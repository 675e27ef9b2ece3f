package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// WriteFile writes an image as [Write] does, to a file with mode 0644. The file
// is there as a whole or, after an error, as it was before.
func WriteFile(file, reference string, image v1.Image) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary.Name()))
		}
	}()
	err = errors.Join(Write(temporary, reference, image), temporary.Chmod(0o644), temporary.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), file); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	return nil
}

// Write writes an image as a tar archive, under a name such as
// registry.example.com/bucketoperator:v0.1.0, with registry and tag. The archive
// is an OCI image layout that has the index of Docker's own format as well, as
// what `docker save` writes: old and new programs read it.
func Write(w io.Writer, reference string, image v1.Image) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	archive, err := newArchive(tag, image)
	if err == nil {
		err = archive.pack(w, time.Unix(0, 0))
	}
	if err != nil {
		return fmt.Errorf("writing the image %s: %w", tag, err)
	}
	return nil
}
