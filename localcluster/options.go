package localcluster

import (
	"fmt"
	"io"
	"net"
)

// Options of a cluster. The zero value is right for tests: etcd, API server and
// controller manager in a temporary folder.
type Options struct {
	// Dir holds data, logs, certificates and kubeconfig. It stays when the
	// cluster stops, and the next cluster in it goes on with its data. Left
	// empty, a temporary folder is used and removed at the end.
	Dir string

	// Progress is told how a build of the programs gets on, and what a cluster
	// does without. Nil drops this.
	Progress io.Writer

	// CRDs are files and folders of custom resource definitions to install.
	// Giving them here, not later, matters to garbage collection: these are
	// installed before the controller manager starts, which else looks for
	// new kinds, and so for owners of that kind, only every 30 seconds.
	CRDs []string

	// NoControllerManager leaves out kube-controller-manager: namespaces stay
	// Terminating, and what an owner leaves behind is not collected.
	NoControllerManager bool

	// Controllers to run, in the syntax of kube-controller-manager's flag
	// --controllers. Left empty, only those run that matter without nodes:
	// garbage collection, deletion of namespaces, service accounts with their
	// tokens and CA, aggregation of cluster roles, resource quota.
	Controllers []string

	// Scheduler adds kube-scheduler.
	Scheduler bool

	// NodeAddress is the IP address of this machine by which pods on it reach the
	// API server. Left empty there are no nodes, and all listens on loopback
	// alone.
	NodeAddress string

	// APIServerArgs are appended to the API server's, so that they win.
	APIServerArgs []string

	// ControllerManagerArgs are appended to those of kube-controller-manager.
	ControllerManagerArgs []string

	// AuditLog is the file that the API server writes its audit log to, a JSON
	// object a line. Left empty, there is none.
	AuditLog string

	// AuditPolicy is the file of the audit policy. Left empty, the log has one
	// entry for each request answered, without bodies (level Metadata).
	AuditPolicy string

	// Fsync makes etcd wait for the disk on each write, as it does in
	// production. Off, a crash of the machine may lose data; that of a process
	// does not.
	Fsync bool
}

func (o Options) validate() error {
	if o.AuditPolicy != "" && o.AuditLog == "" {
		return fmt.Errorf("the audit policy %s needs an audit log", o.AuditPolicy)
	}
	if o.NodeAddress != "" && net.ParseIP(o.NodeAddress) == nil {
		return fmt.Errorf("the node's address %q is no IP address", o.NodeAddress)
	}
	if _, err := readCRDs(o.CRDs); err != nil {
		return fmt.Errorf("reading CRDs: %w", err)
	}
	return nil
}

// serverAddress is where the API server listens.
func (o Options) serverAddress() string {
	if o.NodeAddress != "" {
		return o.NodeAddress
	}
	return loopback
}
