package egress

import (
	"cmp"
	"time"

	"k8s.io/utils/clock"
)

// DefaultTimeout bounds a call where Settings.Timeout does not.
const DefaultTimeout = 10 * time.Second

// Settings are how a process calls the outside, whatever makes the calls and
// whatever protocol they speak. The zero value is the strictest.
type Settings struct {
	// AllowLoopback lets addresses that tenants choose be loopback ones: for development.
	AllowLoopback bool
	// Pool shares out the calls in flight by namespace; nil means one of its own.
	Pool *Pool
	// Fence is asked before each call and each write; nil is none.
	Fence Fence
	// Timeout is how long a client lets a call take, from the name look-up to the last
	// byte; the client applies it. 0 means DefaultTimeout.
	Timeout time.Duration
	// Roots are who may sign a server's certificate; nil means the system's, read
	// anew when they change.
	Roots *Roots
}

// WithDefaults is the settings with Pool, Timeout and Roots filled in, for clients
// of several protocols to share.
func (s Settings) WithDefaults() Settings {
	if s.Pool == nil {
		s.Pool = NewPool(0)
	}
	if s.Roots == nil {
		s.Roots = SystemRoots(clock.RealClock{})
	}
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	return s
}

// Dialer connects to addresses that tenants choose.
func (s Settings) Dialer() *Dialer {
	return &Dialer{AllowLoopback: s.AllowLoopback, Fence: s.Fence, Roots: s.Roots}
}

// Governors are those of one kind of configuration.
func (s Settings) Governors() *Governors { return &Governors{Pool: s.Pool, Fence: s.Fence} }
