package guard_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"avalonhosting.example/bucketoperator/internal/egress/guard"
)

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"link-local":                     "169.254.10.20",
		"link-local, IPv6":               "fe80::1",
		"link-local with a zone":         "fe80::1%eth0",
		"metadata, most clouds":          "169.254.169.254",
		"metadata, Amazon, IPv6":         "fd00:ec2::254",
		"metadata, Amazon, pod identity": "fd00:ec2::23",
		"metadata, Google, IPv6":         "fd20:ce::254",
		"metadata, Alibaba":              "100.100.100.200",
		"metadata, Oracle":               "192.0.0.192",
		"metadata, Azure":                "168.63.129.16",
		"unspecified":                    "0.0.0.0",
		"this network":                   "0.1.2.3",
		"unspecified, IPv6":              "::",
		"multicast":                      "224.0.0.1",
		"multicast, IPv6":                "ff02::1",
		"broadcast":                      "255.255.255.255",
		"reserved":                       "240.0.0.1",
		"IPv4 mapped into IPv6":          "::ffff:169.254.169.254",
		"IPv4 mapped into IPv6, in hex":  "::ffff:a9fe:a9fe",
		"IPv4-compatible":                "::169.254.169.254",
		"IPv4-translated":                "::ffff:0:169.254.169.254",
		"NAT64":                          "64:ff9b::a9fe:a9fe",
		"NAT64, local use":               "64:ff9b:1::a9fe:a9fe",
		"6to4":                           "2002:a9fe:a9fe::1",
		"Teredo":                         "2001:0:5ef5:79fd:0:59d:5601:5601",
		"unspecified, mapped":            "::ffff:0.0.0.0",
		"Alibaba's, NAT64":               "64:ff9b::6464:64c8",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := guard.Check(netip.MustParseAddr(address), true)
			if _, ok := errors.AsType[*guard.RefusedError](err); !ok {
				t.Fatalf("Check(%s) = %v, want a refusal", address, err)
			}
			if !strings.HasPrefix(err.Error(), "leads to "+netip.MustParseAddr(address).String()) || strings.Contains(err.Error(), "spec.") {
				t.Errorf("%q must name the address, and no field", err)
			}
		})
	}
	if err := guard.Check(netip.Addr{}, true); err == nil {
		t.Error("no address at all passed")
	}
}

func TestCheckAllowsPublicAndPrivate(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"192.0.2.1", "8.8.8.8", "10.0.0.1", "172.16.3.4", "192.168.1.1", "100.64.0.1",
		"2001:db8::1", "fd12:3456::1", "2606:4700::1111", "::ffff:10.0.0.1", "64:ff9b::808:808",
	} {
		if err := guard.Check(netip.MustParseAddr(address), false); err != nil {
			t.Errorf("Check(%s) = %v, want it to pass", address, err)
		}
	}
}

func TestCheckLoopbackOnlyIfAllowed(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"} {
		if err := guard.Check(netip.MustParseAddr(address), false); err == nil {
			t.Errorf("%s passed without being allowed", address)
		}
		if err := guard.Check(netip.MustParseAddr(address), true); err != nil {
			t.Errorf("%s did not pass although allowed: %v", address, err)
		}
	}
}

func TestCheckURLTakes(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{
		"https://buckets.example.com", "http://buckets.example.com:8080/api/v1", "https://buckets.example.com/",
		"https://provider.storage.svc", "https://provider.storage.svc.cluster.local.", "HTTPS://BUCKETS.EXAMPLE.COM",
		"https://192.0.2.1", "https://[2001:db8::1]:8443", "https://a_b.example", "https://1.example.com", "https://10.0.0.1:1",
	} {
		if err := guard.CheckURL(endpoint, false); err != nil {
			t.Errorf("CheckURL(%q) = %v, want it to pass", endpoint, err)
		}
	}
}

func TestCheckURLRefuses(t *testing.T) {
	t.Parallel()
	for name, endpoint := range map[string]string{
		"empty":                    "",
		"no scheme":                "buckets.example.com",
		"another scheme":           "ftp://buckets.example.com",
		"file":                     "file:///etc/passwd",
		"no host":                  "https://",
		"only a port":              "https://:443",
		"opaque":                   "https:buckets.example.com",
		"user":                     "https://user:s3cret@buckets.example.com",
		"query":                    "https://buckets.example.com/?a=b",
		"empty query":              "https://buckets.example.com?",
		"fragment":                 "https://buckets.example.com/#a",
		"empty fragment":           "https://buckets.example.com/#",
		"port 0":                   "https://buckets.example.com:0",
		"port too large":           "https://buckets.example.com:65536",
		"empty port":               "https://buckets.example.com:",
		"line break":               "https://buckets.example.com/\r\nX: y",
		"space":                    "https://buckets.example.com/a b",
		"backslash":                `https://buckets.example.com\@192.0.2.1`,
		"dots":                     "https://buckets.example.com/a/../b",
		"escaped dots":             "https://buckets.example.com/%2e%2e/b",
		"escaped host":             "https://%31%36%39.example.com",
		"decimal address":          "http://2130706433",
		"hexadecimal address":      "http://0x7f000001",
		"hexadecimal part":         "http://127.0.0.0x1",
		"octal address":            "http://0177.0.0.1",
		"short address":            "http://127.1",
		"address with a dot after": "http://127.0.0.1.",
		"decimal metadata":         "http://2852039166",
		"leading zeros":            "http://169.254.169.0254",
		"full-width digits":        "http://１２７.0.0.1",
		"circled digits":           "http://①②⑦.0.0.1",
		"loopback":                 "http://127.0.0.1:8080",
		"loopback, IPv6":           "http://[::1]",
		"mapped":                   "http://[::ffff:169.254.169.254]",
		"metadata":                 "http://169.254.169.254/latest",
		"zone":                     "http://[fe80::1%25eth0]",
		"localhost":                "http://localhost:8080",
		"localhost in capitals":    "http://LocalHost",
		"localhost with a dot":     "http://localhost.",
		"under localhost":          "http://a.localhost",
		"empty label":              "http://a..b",
		"too long":                 "https://buckets.example.com/" + strings.Repeat("a", 2048),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := guard.CheckURL(endpoint, false)
			if err == nil {
				t.Fatalf("CheckURL(%q) passed", endpoint)
			}
			if strings.Contains(err.Error(), "spec.") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %q must name no field and hold no password", err)
			}
		})
	}
}

func TestCheckURLLocalhostIfAllowed(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"http://localhost:8080", "http://127.0.0.1", "http://[::1]:8080"} {
		if err := guard.CheckURL(endpoint, true); err != nil {
			t.Errorf("CheckURL(%q) = %v, want it to pass", endpoint, err)
		}
	}
}

func TestControlRefusesAtTheDial(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })

	refusing := net.Dialer{ControlContext: guard.Control(false)}
	_, err = refusing.DialContext(context.Background(), "tcp", listener.Addr().String())
	if _, ok := errors.AsType[*guard.RefusedError](err); !ok {
		t.Fatalf("dialling loopback = %v, want a refusal", err)
	}
	allowing := net.Dialer{ControlContext: guard.Control(true)}
	connection, err := allowing.DialContext(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatalf("dialling loopback, allowed: %v", err)
	}
	_ = connection.Close()
	if err := guard.Control(true)(context.Background(), "udp", "192.0.2.1:1", nil); err == nil {
		t.Error("a network that is not TCP passed")
	}
	if err := guard.Control(true)(context.Background(), "tcp", "example.com:1", nil); err == nil {
		t.Error("a name that was not resolved passed")
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://buckets.example.com/a", "http://2130706433", "http://[::1]:1", "http://a@b", "http://0x7f.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, endpoint string) {
		if guard.CheckURL(endpoint, false) != nil {
			return
		}
		u, err := guard.Parse(endpoint)
		if err != nil {
			t.Fatalf("CheckURL passes %q, Parse does not: %v", endpoint, err)
		}
		// Whatever passes and is an address to the system's resolver is one that Check passes.
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && guard.Check(addr, false) != nil {
			t.Errorf("CheckURL passes %q", endpoint)
		}
	})
}
