package mockprovider

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// DefaultRegions are the regions that a Provider takes when Options names none.
var DefaultRegions = []string{"us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1"}

// MaxSizeGB is the largest bucket that a Provider makes, a petabyte.
const MaxSizeGB = 1_000_000

// Options say how a Provider behaves. The zero value makes a provider that
// keeps its buckets in memory, takes anybody's calls, and answers with Active
// buckets at once.
type Options struct {
	// ActivateAfter is how long a new bucket stays Provisioning; 0 means that
	// the answer to the create call already says Active.
	ActivateAfter time.Duration
	// Regions are the regions that are taken; nil means DefaultRegions.
	Regions []string
	// APIKeys maps each bearer token that is taken to the account that it
	// belongs to. An account sees its own buckets and idempotency keys only;
	// two tokens of one account are what a rotation looks like. Empty means
	// that calls need no token.
	APIKeys map[string]string
	// Minimal makes a provider that knows only POST, GET and DELETE, reads
	// nothing but the region, ignores idempotency keys, and reports only id,
	// region and phase.
	Minimal bool
	// SizeStep rounds the sizes of buckets up to a multiple of this many GB; 0
	// takes them as they are wanted.
	SizeStep int32
	// Latency is added to every call.
	Latency time.Duration
	// File keeps the buckets across restarts; empty means in memory only.
	File string
	// Clock tells the time; nil means the real one.
	Clock clock.Clock
}

// Provider is a bucket provider. It serves the protocol as an http.Handler;
// Admin is the handler that controls it. It is safe for concurrent use.
type Provider struct {
	options Options
	clock   clock.Clock
	faults  Faults
	calls   callLog
	mux     *http.ServeMux

	mu      sync.Mutex
	apiKeys map[string]string
	store   store
}

// New makes a Provider, reading Options.File if there is one. It fails when
// the file cannot be read, or is not one that a Provider wrote.
func New(options Options) (*Provider, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Regions == nil {
		options.Regions = DefaultRegions
	}
	p := &Provider{options: options, clock: options.Clock, apiKeys: options.APIKeys}
	p.store = newStore(options.File)
	if err := p.store.load(); err != nil {
		return nil, fmt.Errorf("opening the buckets: %w", err)
	}
	p.mux = p.routes()
	return p, nil
}

// Faults are the faults that the Provider has been told to make.
func (p *Provider) Faults() *Faults { return &p.faults }

// SetAPIKeys replaces the bearer tokens that are taken; see Options.APIKeys.
func (p *Provider) SetAPIKeys(accountByKey map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apiKeys = accountByKey
}

// Buckets are all buckets that there are, by age.
func (p *Provider) Buckets() []Bucket {
	p.mu.Lock()
	defer p.mu.Unlock()
	buckets := make([]Bucket, 0, len(p.store.buckets))
	for _, b := range p.store.buckets {
		buckets = append(buckets, p.present(b))
	}
	slices.SortFunc(buckets, func(a, b Bucket) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return buckets
}

// Calls are the latest calls of the protocol, in the order in which they came,
// at most the last 100,000.
func (p *Provider) Calls() []Call { return p.calls.list() }

// ResetCalls forgets the calls so far.
func (p *Provider) ResetCalls() { p.calls.reset() }

// Vanish removes a bucket as if somebody had done so behind the protocol's
// back: its idempotency key may make a new one. It tells whether there was one.
func (p *Provider) Vanish(id string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store.vanish(id)
}

// SetPhase holds a bucket in a phase, with a message for a person, whatever
// its age. An empty phase lets its age decide again. It tells whether there is
// such a bucket.
func (p *Provider) SetPhase(id string, phase Phase, message string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store.update(id, func(b *Bucket) { b.Phase, b.Message = phase, message })
}

// SetSize changes a bucket's size as if somebody had done so behind the
// protocol's back. It tells whether there is such a bucket.
func (p *Provider) SetSize(id string, sizeGB int32) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.store.update(id, func(b *Bucket) { b.SizeGB = sizeGB })
}

// present is the bucket as it is now: with the phase that its age gives.
func (p *Provider) present(b Bucket) Bucket {
	if b.Phase == "" {
		b.Phase = Active
		if p.clock.Since(b.CreatedAt) < p.options.ActivateAfter {
			b.Phase = Provisioning
		}
	}
	return b
}
