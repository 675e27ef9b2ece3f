package localcluster

import "os"

// TestKubeconfigEnv names the environment variable with the path of a kubeconfig
// file whose cluster package testplane uses, in place of starting one.
const TestKubeconfigEnv = "BUCKETOPERATOR_TEST_KUBECONFIG"

// NodeEnv names the environment variable that a command inside a node of package
// node has, and no other: the path, inside, of the node's folder.
const NodeEnv = "BUCKETOPERATOR_NODE"

// Environ is the environment of this process for a command that uses the
// cluster: KUBECONFIG and TestKubeconfigEnv are set, and kubectl is in PATH.
func (c *Cluster) Environ() []string {
	return append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig(),
		TestKubeconfigEnv+"="+c.Kubeconfig(),
		"PATH="+c.assets.Dir+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
}

// WriteKubeconfig writes what is in the file that Kubeconfig names to path, too.
func (c *Cluster) WriteKubeconfig(path string) error {
	return writeKubeconfig(c.admin, adminUser, path)
}
