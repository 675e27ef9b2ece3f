//go:build linux

package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// pluginFolder is where Debian has the CNI plugins.
const pluginFolder = "/usr/lib/cni"

// needed are the programs that the node does not build, and Debian's packages of
// them.
var needed = []struct{ program, debianPackage string }{
	{"runc", "runc"},
	{pluginFolder + "/ptp", "containernetworking-plugins"},
	{pluginFolder + "/host-local", "containernetworking-plugins"},
	{"nft", "nftables"},
	{"ip", "iproute2"},
	{"mount", "mount"}, // the kubelet calls it
}

// checkMachine tells in one line what this machine lacks.
func checkMachine() error {
	if os.Geteuid() != 0 {
		return errors.New("a node needs root: it makes namespaces, mounts and cgroups")
	}
	var missing []string
	for _, n := range needed {
		if !installed(n.program) && !slices.Contains(missing, n.debianPackage) {
			missing = append(missing, n.debianPackage)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("a node needs Debian packages that are not installed: apt-get install --no-install-recommends %s", strings.Join(missing, " "))
	}
	return nil
}

// systemFolders hold programs of administrators, which not every user's PATH has.
const systemFolders = "/usr/local/sbin:/usr/sbin:/sbin"

// searchPath is a PATH with the folders given first, and the system's last.
func searchPath(first ...string) string {
	return strings.Join(append(first, os.Getenv("PATH"), systemFolders), string(os.PathListSeparator))
}

// installed tells whether there is a program of that name or path.
func installed(program string) bool {
	if filepath.IsAbs(program) {
		_, err := exec.LookPath(program)
		return err == nil
	}
	return slices.ContainsFunc(filepath.SplitList(searchPath()), func(folder string) bool {
		_, err := exec.LookPath(filepath.Join(folder, program))
		return err == nil && filepath.IsAbs(folder)
	})
}
