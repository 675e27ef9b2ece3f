// Package testnode is what end-to-end tests do to a cluster with nodes: load
// images, run pods, cut their network, kill their processes, freeze the kubelet,
// drain the node. A package of such tests has
//
//	func TestMain(m *testing.M) { testnode.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		namespace := testnode.Namespace(t)
//		…
//	}
//
// and is run by `make e2e`: in a node of package localcluster/node or, with
// CLUSTER=existing, on the cluster of the kubeconfig. What can only be done to the
// former skips the test on the latter, and says so.
//
// Whatever a helper breaks it mends at the end of the test. Helpers that break the
// whole node (FreezeKubelet, Drain) are for tests that do not run in parallel.
package testnode
