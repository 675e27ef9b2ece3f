//go:build linux

package node

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"avalonhosting.example/bucketoperator/localcluster/image"
)

// Names of the images that every node has. No registry serves them.
const (
	pauseImage = "localcluster.example/pause:local"
	dnsImage   = "localcluster.example/coredns:local"
)

// writeOwnImages writes the archives of the images that every node has into dir,
// and returns their paths.
func writeOwnImages(programs Programs, dir string) ([]string, error) {
	var archives []string
	for _, own := range []struct{ name, program string }{
		{pauseImage, filepath.Join(programs.Containerd, "pause")},
		{dnsImage, filepath.Join(programs.CoreDNS, "coredns")},
	} {
		archive := filepath.Join(dir, filepath.Base(own.program)+".tar")
		if err := writeStaticImage(own.name, own.program, archive); err != nil {
			return nil, fmt.Errorf("making the image %s: %w", own.name, err)
		}
		archives = append(archives, archive)
	}
	return archives, nil
}

// writeStaticImage writes an image that holds one program and runs it.
func writeStaticImage(name, program, archive string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	entrypoint := path.Join("/", filepath.Base(program))
	tree := image.NewTree()
	if err := tree.AddFile(entrypoint, 0o755, content); err != nil {
		return err
	}
	built, err := image.Build(tree, image.Config{Entrypoint: []string{entrypoint}})
	if err != nil {
		return err
	}
	return image.WriteFile(archive, name, built)
}
