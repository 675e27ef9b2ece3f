package guard

import (
	"fmt"
	"net/netip"
)

// RefusedError is why an address must not be connected to.
type RefusedError struct {
	// Addr is the address as it was given.
	Addr netip.Addr
	// Kind is what sort of address it is, such as "a link-local address".
	Kind string
	// Cure is what to do about it.
	Cure string
}

// Error names the address, what is wrong with it, and the cure. It follows the
// name of whatever was to be reached, which is the caller's to put before it.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("leads to %s, which is %s: %s", e.Addr, e.Kind, e.Cure)
}

const (
	cureOther    = "set it to the provider's own address"
	cureLoopback = "set it to an address that is reachable from the operator's pod, " +
		"or start the operator so that it allows loopback endpoints"
)

// metadata are the addresses under which clouds serve credentials to machines,
// as far as they are not link-local anyway.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),      // Amazon
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	reserved    = netip.MustParsePrefix("240.0.0.0/4") // with the broadcast address
)

// Check tells whether an address may be connected to; if not, it answers with
// a *RefusedError. An IPv4 address inside an IPv6 one counts as what it is.
func Check(addr netip.Addr, allowLoopback bool) error {
	refuse := func(kind, cure string) error { return &RefusedError{Addr: addr, Kind: kind, Cure: cure} }
	if !addr.IsValid() {
		return refuse("no IP address", cureOther)
	}
	for _, ip := range meanings(addr) {
		switch {
		case ip.IsLoopback():
			if !allowLoopback {
				return refuse("a loopback address", cureLoopback)
			}
		case ip.IsUnspecified(), thisNetwork.Contains(ip):
			return refuse("an unspecified address", cureOther)
		case ip.IsLinkLocalUnicast():
			return refuse("a link-local address", cureOther)
		case ip.IsMulticast():
			return refuse("a multicast address", cureOther)
		case reserved.Contains(ip):
			return refuse("a broadcast or reserved address", cureOther)
		case isMetadata(ip):
			return refuse("the address of a metadata service", cureOther)
		}
	}
	return nil
}

func isMetadata(ip netip.Addr) bool {
	for _, prefix := range metadata {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

// meanings are the address itself and every IPv4 address that a network may
// take it for.
func meanings(addr netip.Addr) []netip.Addr {
	addr = addr.WithZone("").Unmap()
	all := []netip.Addr{addr}
	if addr.Is4() || addr.IsLoopback() || addr.IsUnspecified() {
		return all
	}
	b := addr.As16()
	for _, form := range embeddings {
		if form.prefix.Contains(addr) {
			v4 := [4]byte(b[form.offset : form.offset+4])
			for i := range v4 {
				v4[i] ^= form.mask
			}
			all = append(all, netip.AddrFrom4(v4))
		}
	}
	return all
}

// embeddings are the ways to write an IPv4 address inside an IPv6 one.
var embeddings = []struct {
	prefix netip.Prefix
	offset int
	mask   byte
}{
	{netip.MustParsePrefix("::/96"), 12, 0},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, 0}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, 0},  // NAT64, local use
	{netip.MustParsePrefix("2002::/16"), 2, 0},        // 6to4
	{netip.MustParsePrefix("2001::/32"), 12, 0xff},    // Teredo: the client's, inverted
}
