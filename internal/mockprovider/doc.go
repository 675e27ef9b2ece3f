// Package mockprovider is a bucket provider for tests, the demo and end-to-end
// runs: an http.Handler that speaks the whole protocol of docs/http-provider.md,
// or only the least of it, and that fails in the ways that it is told to.
//
// It starts no goroutines: a bucket turns Active when enough time has passed
// since it was made, by the clock, at the moment somebody looks.
package mockprovider
