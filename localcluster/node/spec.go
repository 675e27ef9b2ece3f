//go:build linux

package node

// spec is all that the parts inside have to know.
type spec struct {
	// Folder is the node's, prepared, as the machine knows it.
	Folder string
	// Kubernetes, Containerd are the folders of the programs.
	Kubernetes, Containerd string
	// Images are archives to load before the first pod starts.
	Images []string

	CRDs                  []string
	AuditLog, AuditPolicy string

	// Hierarchies are the machine's cgroup file systems, Cgroup the node's cgroup
	// as the machine sees it.
	Hierarchies []hierarchy
	Cgroup      cgroup
}
