package guard

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
)

// Control is a hook for net.Dialer.ControlContext that refuses, with a
// *RefusedError, the addresses that Check refuses. It sees the address that is
// connected to, after name resolution, once for each that is tried.
func Control(allowLoopback bool) func(ctx context.Context, network, address string, c syscall.RawConn) error {
	return func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if err := TCP(ctx, network, address, c); err != nil {
			return err
		}
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", address, err)
		}
		return Check(target.Addr(), allowLoopback)
	}
}

// TCP is a hook like Control that takes every address, of TCP.
func TCP(_ context.Context, network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return fmt.Errorf("connecting to %s: network %s is not TCP", address, network)
	}
	return nil
}
