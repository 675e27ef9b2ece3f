// Package egress is what every call to the outside of the cluster goes through,
// whatever protocol it speaks and whatever answers it: an address guard, limits,
// a circuit breaker, the fence of a replica that may have lost the leadership
// without knowing it, and trust bundles that are read anew when they change.
//
// A client of some protocol needs two things of it:
//
//   - A [Dialer], whose connections it speaks its protocol over. It refuses what
//     must not be connected to, and what must not be sent.
//   - A [Governor] for each destination, from [Governors]. It is asked before
//     every call, and told how the call ended.
//
// All Governors of a process share one [Pool], which shares out the calls in
// flight by namespace.
//
// The package knows no protocol, no kind, no field's name and nothing of
// Kubernetes. Its errors say what happened; who shows them says what to do.
package egress
