// Package programs builds the operator and the mock provider, and runs them as
// the processes that they are anywhere else, beside a local cluster: for the
// quick start and the benchmark.
package programs

// The operator's namespace and ServiceAccount, as in config/rbac.
const (
	OperatorNamespace = "bucketoperator-system"
	OperatorAccount   = "bucketoperator-controller-manager"
)
