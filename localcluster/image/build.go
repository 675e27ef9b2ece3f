package image

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// NonRoot is the user and group that containers run as if nothing else is said.
// It is a number, as the kubelet cannot tell whether a name is root.
const NonRoot = "65532:65532"

// Config says how containers of an image run.
type Config struct {
	// Entrypoint is the program and its first arguments. It must be given.
	Entrypoint []string
	// Command are the arguments of a container that is given none.
	Command []string
	// User is a user, or user:group. It defaults to [NonRoot].
	User string
	// Env are the environment's variables, as NAME=value. PATH is not added.
	Env []string
	// WorkingFolder defaults to /.
	WorkingFolder string
	// Labels describe the image, in the terms of org.opencontainers.image.*.
	Labels map[string]string
	// Architecture is GOARCH of the programs. It defaults to this program's own.
	Architecture string
	// Created is the time of the image and of all its files, see [SourceDate]. It
	// defaults to 1970, and is kept in seconds.
	Created time.Time
}

// Build makes an image of one layer that holds the tree.
func Build(tree *Tree, config Config) (v1.Image, error) {
	if len(config.Entrypoint) == 0 {
		return nil, fmt.Errorf("building an image: it has no entrypoint")
	}
	created := time.Unix(0, 0).UTC()
	if !config.Created.IsZero() {
		created = config.Created.UTC().Truncate(time.Second)
	}
	layer, err := tree.layer(created)
	if err != nil {
		return nil, err
	}

	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		OS:           "linux",
		Architecture: cmp.Or(config.Architecture, runtime.GOARCH),
		Created:      v1.Time{Time: created},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: config.Entrypoint,
			Cmd:        config.Command,
			User:       cmp.Or(config.User, NonRoot),
			Env:        config.Env,
			WorkingDir: cmp.Or(config.WorkingFolder, "/"),
			Labels:     config.Labels,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("setting the image's configuration: %w", err)
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the image's files: %w", err)
	}
	return image, nil
}
