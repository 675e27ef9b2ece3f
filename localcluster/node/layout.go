//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// layout is the folder of a node: where in it things are.
type layout string

// mounted is the node's folder as it is inside. Its path on the machine may be too
// long for the sockets in it: theirs have 107 characters at most.
const mounted layout = "/run/node"

func (l layout) controlPlane() string { return filepath.Join(string(l), "control-plane") }
func (l layout) containerd() string   { return filepath.Join(string(l), "containerd") }
func (l layout) kubelet() string      { return filepath.Join(string(l), "kubelet") }
func (l layout) images() string       { return filepath.Join(string(l), "images") }
func (l layout) config() string       { return filepath.Join(string(l), "config") }
func (l layout) logs() string         { return filepath.Join(string(l), "logs") }
func (l layout) podLogs() string      { return filepath.Join(l.logs(), "pods") }

func (l layout) log(program string) string { return filepath.Join(l.logs(), program+".log") }

// prepare makes the folders anew: what a node leaves in its folder is to be read,
// not to be gone on with.
func (l layout) prepare() error {
	for _, folder := range []string{l.controlPlane(), l.containerd(), l.kubelet(), l.images(), l.config(), l.logs()} {
		if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
			return fmt.Errorf("preparing the node's folder: %w", err)
		}
	}
	return nil
}
