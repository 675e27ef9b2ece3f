//go:build linux

package node

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Options of a node. The zero value is a node in a temporary folder.
type Options struct {
	// Dir holds data and logs. It stays when the node stops, for its logs; a node
	// that starts in it begins anew all the same. Left empty, a temporary folder
	// is used and removed at the end.
	Dir string

	// Progress is told how builds and the start get on. Nil drops this.
	Progress io.Writer

	// Images are archives, as package image writes them, that the node has from
	// the start. Their names are those in the archive.
	Images []string

	// CRDs are files and folders of custom resource definitions to install.
	CRDs []string

	// AuditLog is the file that the API server writes its audit log to, a JSON
	// object a line. Left empty, there is none.
	AuditLog string

	// AuditPolicy is the file of the audit policy. Left empty, the log has one
	// entry for each request answered, without bodies (level Metadata).
	AuditPolicy string
}

// resolve makes all paths absolute, and fails when one is where the node has
// another folder of that name: it would read or write there without a word.
func (o Options) resolve() (Options, error) {
	o.Images, o.CRDs = slices.Clone(o.Images), slices.Clone(o.CRDs)
	paths := []*string{&o.Dir, &o.AuditLog, &o.AuditPolicy}
	for i := range o.Images {
		paths = append(paths, &o.Images[i])
	}
	for i := range o.CRDs {
		paths = append(paths, &o.CRDs[i])
	}
	for _, path := range paths {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		if err := visible(absolute); err != nil {
			return o, err
		}
		*path = absolute
	}
	return o, nil
}

// visible fails when what is at the path is not there for the node.
func visible(absolute string) error {
	for _, h := range hidden {
		if strings.HasPrefix(absolute+"/", h.folder+"/") {
			return fmt.Errorf("%s cannot be used: the node has a %s of its own", absolute, h.folder)
		}
	}
	return nil
}
