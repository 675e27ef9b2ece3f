// Package testkit is what tests share: waiting for a condition, the objects that
// users make, a record of requests, and the operator's controllers at work in a
// namespace of a real API server, against a mock provider on loopback.
package testkit
