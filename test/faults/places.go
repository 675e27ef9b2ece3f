package faults

import (
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// places are namespaces that are used by one run after another: deleting a
// namespace costs the API server more than a run does.
type places struct {
	t  testing.TB
	mu sync.Mutex
	of []string
}

// take is an empty namespace.
func (p *places) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.of); n > 0 {
		namespace := p.of[n-1]
		p.of = p.of[:n-1]
		return namespace
	}
	return testplane.Namespace(p.t)
}

// put gives a namespace back that a run has left empty.
func (p *places) put(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of = append(p.of, namespace)
}

var shared struct {
	once   sync.Once
	client client.WithWatch
}

// sharedClient is one client for all runs: making one costs a discovery.
func sharedClient(t testing.TB) client.WithWatch {
	shared.once.Do(func() { shared.client = testkit.NewClient(t) })
	return shared.client
}
