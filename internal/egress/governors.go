package egress

import (
	"sync"

	"k8s.io/utils/clock"
)

// Destination identifies a configuration that calls are made with: all with the
// same share one Governor. The zero value shares nothing.
type Destination struct {
	// Namespace is whose the configuration is; empty for one of the operator's own,
	// which all namespaces share.
	Namespace string
	// Name is the configuration's.
	Name string
}

// shared tells whether calls for many namespaces go there.
func (d Destination) shared() bool { return d.Namespace == "" && d.Name != "" }

// Target is a destination as it is configured now.
type Target struct {
	Destination Destination
	// Address and Credentials are where calls go, and as whom.
	Address     string
	Credentials map[string][]byte
	// Limits bound all calls.
	Limits Limits
}

// Governors are the Governors of one kind of configuration, by Destination. The
// zero value is ready to use; its fields must not change after the first use.
type Governors struct {
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// Pool shares out the calls in flight; nil means one of its own.
	Pool *Pool
	// Fence is asked before each call; nil is none.
	Fence Fence

	once sync.Once
	mu   sync.Mutex
	all  map[Destination]*Governor
}

func (g *Governors) init() {
	g.once.Do(func() {
		if g.Clock == nil {
			g.Clock = clock.RealClock{}
		}
		if g.Pool == nil {
			g.Pool = NewPool(0)
		}
		g.all = map[Destination]*Governor{}
	})
}

// For is the Governor of a target's Destination, brought up to date with it. If
// another address or other credentials are meant from now on, what was learned of
// the old ones is forgotten.
func (g *Governors) For(target Target) *Governor {
	g.init()
	g.mu.Lock()
	defer g.mu.Unlock()
	governor := g.all[target.Destination]
	if governor == nil {
		governor = newGovernor(g.Clock, g.Pool, g.Fence, target.Destination, target.Limits)
		if target.Destination != (Destination{}) {
			g.all[target.Destination] = governor
			g.Pool.watch(governor)
		}
	}
	governor.setLimits(target.Limits)
	governor.retarget(target.Address, target.Credentials)
	return governor
}

// Forget drops the Governor of a destination. Clients that have it keep it.
func (g *Governors) Forget(destination Destination) {
	g.init()
	g.mu.Lock()
	defer g.mu.Unlock()
	if governor := g.all[destination]; governor != nil {
		g.Pool.unwatch(governor)
		delete(g.all, destination)
	}
}
