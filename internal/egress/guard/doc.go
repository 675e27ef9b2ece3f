// Package guard keeps an endpoint that a tenant wrote from reaching what the
// tenant may not: metadata services, link-local addresses and, unless allowed,
// the operator's own loopback.
//
// CheckURL gives an early, clear message. Control is what protects: it looks at
// the address that is about to be connected to, after the name was resolved, so
// that neither spelling nor DNS gets around it.
//
// Private ranges (10/8, 172.16/12, 192.168/16, fc00::/7) are allowed: a provider
// on the premises or in the cluster has such an address. Where tenants must not
// reach these, a NetworkPolicy for the operator's egress is the place to say so.
package guard
