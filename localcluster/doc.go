// Package localcluster runs a real Kubernetes control plane (etcd,
// kube-apiserver and, if wanted, kube-controller-manager and kube-scheduler) as
// child processes on loopback, for tests, benchmarks and development.
//
// The programs are built from source, once, by the Go toolchain: neither a
// container runtime nor an image registry is needed. There are no nodes, so
// pods are stored but never run.
package localcluster
