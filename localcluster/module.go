package localcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

const modulePath = "avalonhosting.example/bucketoperator"

// ModuleRoot returns the folder of the operator's go.mod, looked for in the
// working directory and then in the folders above it. It thus works in the test
// of any package, which runs in that package's folder.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the root of module %s: %w", modulePath, err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil && modfile.ModulePath(text) == modulePath:
			return dir, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("finding the root of module %s: %w", modulePath, err)
		case dir == filepath.Dir(dir):
			return "", fmt.Errorf("finding the root of module %s: no folder from %s upwards holds its go.mod", modulePath, start)
		}
	}
}

// ProjectCRDs returns the folder of the operator's own custom resource
// definitions, whether or not it exists.
func ProjectCRDs() (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "config", "crd", "bases"), nil
}
