// Package httpapi reaches bucket providers that speak the HTTP protocol of
// docs/http-provider.md. It trusts no answer: calls are bounded in time, bodies
// and headers in size, ids are checked before they are put into a path,
// redirects are not followed, and endpoints of tenants must pass package guard.
package httpapi

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/utils/clock"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/egress/guard"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// Factory opens Clients. The zero value is ready to use; its fields must not
// change after the first Open. It is safe for concurrent use.
type Factory struct {
	// Egress is how calls are made.
	Egress egress.Settings
	// Observe is told of each call that ended: the operation, the HTTP status
	// or else error, timeout or throttled, and how long it took. May be nil.
	Observe func(operation, code string, seconds float64)
	// Clock tells the time for limits and measurements; nil means the real one.
	Clock clock.PassiveClock
	// Resolver looks up names; nil means the system's.
	Resolver *net.Resolver
	// Wrap, if set, stands between the Clients and the network, to watch calls or
	// to keep them from being made.
	Wrap func(http.RoundTripper) http.RoundTripper

	once      sync.Once
	governors *egress.Governors
	trusted   *http.Transport
	guarded   *http.Transport
}

var _ provider.Factory = (*Factory)(nil)

func (f *Factory) init() {
	f.once.Do(func() {
		f.Egress = f.Egress.WithDefaults()
		if f.Clock == nil {
			f.Clock = clock.RealClock{}
		}
		if f.Observe == nil {
			f.Observe = func(string, string, float64) {}
		}
		f.governors = f.Egress.Governors()
		f.governors.Clock = f.Clock
		dialer := *f.Egress.Dialer()
		dialer.Resolver = f.Resolver
		f.guarded = transport(dialer)
		dialer.Trusted = true
		f.trusted = transport(dialer)
	})
}

// Open makes a Client. It makes no call. It fails with a Terminal *provider.Error
// when the endpoint cannot be used (EndpointInvalid, EndpointRefused) or the
// credentials hold no usable apiKey (SecretInvalid).
func (f *Factory) Open(config provider.Config) (provider.Client, error) {
	f.init()
	names := config.Names.OrDefault()
	base, err := f.endpoint(config, names)
	if err != nil {
		return nil, err
	}
	key, err := apiKey(config.Credentials, names.Secret)
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper = f.guarded
	if config.Trusted {
		transport = f.trusted
	}
	if f.Wrap != nil {
		transport = f.Wrap(transport)
	}
	return &client{
		base:      base,
		names:     names,
		key:       key,
		secrets:   spellings(key),
		transport: transport,
		governor: f.governors.For(egress.Target{
			Destination: config.Owner, Address: config.Endpoint, Credentials: config.Credentials, Limits: config.Limits,
		}),
		namespace: config.Namespace,
		timeout:   f.Egress.Timeout,
		clock:     f.Clock,
		observe:   f.Observe,
	}, nil
}

// Forget frees what the Clients of owner share.
func (f *Factory) Forget(owner egress.Destination) {
	f.init()
	f.governors.Forget(owner)
}

// Close closes the connections that no call is using.
func (f *Factory) Close() {
	f.init()
	f.trusted.CloseIdleConnections()
	f.guarded.CloseIdleConnections()
}

func (f *Factory) endpoint(config provider.Config, names provider.Names) (*url.URL, error) {
	base, err := guard.Parse(config.Endpoint)
	if err != nil {
		return nil, notSent(provider.Terminal, reasonEndpointInvalid, refusal(err, names), err)
	}
	if !config.Trusted {
		if err := guard.CheckURL(config.Endpoint, f.Egress.AllowLoopback); err != nil {
			return nil, notSent(provider.Terminal, reasonEndpointRefused, refusal(err, names), err)
		}
	}
	return base, nil
}

// refusal is the guard's word on an endpoint, after what the endpoint is called.
func refusal(err error, names provider.Names) string {
	message := names.Endpoint + " " + err.Error()
	if errors.Is(err, guard.ErrUserinfo) {
		message += ", and put the API key into the Secret that " + names.SecretRef + " names"
	}
	return message
}
