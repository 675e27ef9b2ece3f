package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"avalonhosting.example/bucketoperator/localcluster/image"
)

// Where things are in the image, as in the base image of the Dockerfile.
const (
	programPath      = "/bucketoperator"
	certificatesPath = "/etc/ssl/certs/ca-certificates.crt"
)

// The user is for programs that ask for a name or a home.
const (
	users  = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	groups = "root:x:0:\nnonroot:x:65532:\n"
)

func buildImage(p program, o options) (v1.Image, error) {
	certificates, err := publicAuthorities()
	if err != nil {
		return nil, err
	}
	tree := image.NewTree()
	err = errors.Join(
		tree.AddFile(programPath, 0o755, p.content),
		tree.AddFile(certificatesPath, 0o644, certificates),
		tree.AddFile("/etc/passwd", 0o644, []byte(users)),
		tree.AddFile("/etc/group", 0o644, []byte(groups)),
		tree.AddFolder("/tmp", 0o777|fs.ModeSticky),
	)
	if err != nil {
		return nil, err
	}
	built, err := image.Build(tree, image.Config{
		Entrypoint:   []string{programPath},
		Env:          []string{"SSL_CERT_FILE=" + certificatesPath},
		Architecture: p.setting("GOARCH"),
		Created:      o.created,
		Labels: map[string]string{
			"org.opencontainers.image.title":       "bucketoperator",
			"org.opencontainers.image.description": "Buckets at a provider outside the cluster, as objects inside it",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     cmp.Or(o.version, "devel"),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("packing the operator: %w", err)
	}
	return built, nil
}
