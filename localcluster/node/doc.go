// Package node runs a whole Kubernetes cluster of one node on this machine, with
// real pods: the control plane of package localcluster, kubelet, kube-proxy,
// containerd and CoreDNS. It needs Linux, root and a few Debian packages; it
// needs neither a container engine nor an image registry.
//
// All of it lives in namespaces of its own: processes, network, mounts, IPC and
// host name. Process 1 of these is a copy of this program that does nothing but
// reap, and it is tied to this process: when either ends, in any way, the kernel
// ends all that runs in the namespaces and takes down the network and the mounts.
// What the kernel leaves, the cgroups and a temporary folder, this process
// removes, or else the next one that starts a node.
//
// A program that starts nodes is started again for the parts that run inside,
// and therefore begins with
//
//	func main() {
//		node.Inside()
//		…
//	}
//
// Pods have addresses and reach one another, services and the node; there is no
// way out of the namespaces. Network policies are stored, but not enforced.
package node
