package httpapi_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

func TestOpenRefusesEndpointsOfTenants(t *testing.T) {
	t.Parallel()
	for endpoint, reason := range map[string]string{
		"http://169.254.169.254":          "EndpointRefused",
		"http://127.0.0.1:8080":           "EndpointRefused",
		"http://[::ffff:169.254.169.254]": "EndpointRefused",
		"http://localhost":                "EndpointRefused",
		"http://2130706433":               "EndpointInvalid",
		"http://127.1":                    "EndpointInvalid",
		"https://a:b@buckets.example.com": "EndpointInvalid",
		"":                                "EndpointInvalid",
	} {
		_, err := newFactory(t, &httpapi.Factory{}).Open(provider.Config{Endpoint: endpoint})
		if e := wantFailure(t, err, provider.Terminal, reason); !e.Refused || !strings.Contains(e.Message, "spec.endpoint") {
			t.Errorf("Open(%q) = %#v", endpoint, e)
		}
	}
}

func TestOpenRefusesSecretsWithoutAUsableKey(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]map[string][]byte{
		"no key":        {},
		"another key":   {"apikey": []byte(canary)},
		"empty":         {"apiKey": nil},
		"a break":       {"apiKey": []byte("\n")},
		"a space":       {"apiKey": []byte(canary + " x")},
		"breaks":        {"apiKey": []byte(canary + "\r\nX-Evil: 1")},
		"not ASCII":     {"apiKey": []byte(canary + "é")},
		"a zero":        {"apiKey": []byte(canary + "\x00")},
		"much too long": {"apiKey": []byte(strings.Repeat(canary, 1000))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newFactory(t, &httpapi.Factory{}).Open(provider.Config{Endpoint: "https://buckets.example.com", Credentials: credentials})
			if e := wantFailure(t, err, provider.Terminal, "SecretInvalid"); !e.Refused || !strings.Contains(e.Message, "apiKey") {
				t.Errorf("error = %#v", e)
			}
		})
	}
}

func TestLineBreakAfterTheKeyIsLeftOut(t *testing.T) {
	t.Parallel()
	url := serve(t, newMock(t, mockprovider.Options{APIKeys: map[string]string{canary: "a"}}))
	for _, end := range []string{"\n", "\r\n"} {
		c := with(config(url), func(c *provider.Config) { c.Credentials["apiKey"] = []byte(canary + end) })
		if err := open(t, newFactory(t, &httpapi.Factory{}), c).Probe(t.Context()); err != nil {
			t.Errorf("with %q: %v", end, err)
		}
	}
}

// The name passes every check of the URL; what it resolves to does not.
func TestNamesOfTenantsAreCheckedOnceResolved(t *testing.T) {
	t.Parallel()
	mock := newMock(t, mockprovider.Options{})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(serve(t, mock), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://buckets.test.:" + port
	for _, address := range []string{"127.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0", "fd00:ec2::254"} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			factory := newFactory(t, &httpapi.Factory{Resolver: resolverFor(t, address)})
			tenants := with(config(endpoint), func(c *provider.Config) { c.Trusted = false })
			_, err := open(t, factory, tenants).Create(t.Context(), "key-1", want)
			if e := wantFailure(t, err, provider.Transient, "EndpointRefused"); !e.Refused || !strings.Contains(e.Message, "spec.endpoint") {
				t.Errorf("error = %#v", e)
			}
		})
	}
	t.Run("loopback if allowed", func(t *testing.T) {
		t.Parallel()
		factory := newFactory(t, &httpapi.Factory{Resolver: resolverFor(t, "127.0.0.1"), Egress: egress.Settings{AllowLoopback: true}})
		tenants := with(config(endpoint), func(c *provider.Config) { c.Trusted = false })
		if err := open(t, factory, tenants).Probe(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if buckets := mock.Buckets(); len(buckets) != 0 {
			t.Errorf("calls got through: %+v", buckets)
		}
	})
}

func TestConnectionsOfTrustedEndpointsAreNotLentToTenants(t *testing.T) {
	t.Parallel()
	url := serve(t, newMock(t, mockprovider.Options{}))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	factory := newFactory(t, &httpapi.Factory{Resolver: resolverFor(t, "127.0.0.1")})
	trusted := config("http://buckets.test.:" + port)
	if err := open(t, factory, trusted).Probe(t.Context()); err != nil { // leaves a connection
		t.Fatal(err)
	}
	tenants := with(trusted, func(c *provider.Config) { c.Trusted = false })
	_ = wantFailure(t, open(t, factory, tenants).Probe(t.Context()), provider.Transient, "EndpointRefused")
}

func TestUnknownHost(t *testing.T) {
	t.Parallel()
	factory := newFactory(t, &httpapi.Factory{Resolver: resolverFor(t, "")})
	_, err := open(t, factory, config("http://buckets.test.")).Create(t.Context(), "key-1", want)
	if e := wantFailure(t, err, provider.Transient, "ProviderUnavailable"); !e.Refused || !strings.Contains(e.Message, "there is no host") {
		t.Errorf("error = %#v", e)
	}
	if !errors.Is(err, provider.ErrUnreachable) {
		t.Error("the circuit does not learn of it")
	}
}

// resolverFor asks a DNS server on loopback that knows one address for every
// name; none if it is empty.
func resolverFor(t *testing.T, address string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	go func() {
		defer close(done)
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply, ok := dnsReply(buffer[:n], address); ok {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
		},
	}
}

func dnsReply(query []byte, address string) ([]byte, bool) {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil || len(message.Questions) != 1 {
		return nil, false
	}
	question := message.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: message.ID, Response: true, Authoritative: true},
		Questions: message.Questions,
	}
	header := dnsmessage.ResourceHeader{Name: question.Name, Class: question.Class, TTL: 1}
	addr, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		reply.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA && addr.Is4():
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: addr.As4()}}}
	case question.Type == dnsmessage.TypeAAAA && addr.Is6():
		reply.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: addr.As16()}}}
	}
	data, err := reply.Pack()
	return data, err == nil
}
