package faults

import (
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

// clients has a client for each adapter: making one costs a discovery.
var clients sync.Map

// clientOf is the one client for all runs of an adapter.
func clientOf(t testing.TB, a *Adapter) client.WithWatch {
	if c, ok := clients.Load(a.Scheme); ok {
		return c.(client.WithWatch)
	}
	c, err := client.NewWithWatch(testplane.Config(), client.Options{Scheme: a.Scheme})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	clients.Store(a.Scheme, c)
	return c
}
