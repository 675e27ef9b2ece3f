// Package record is a kind of the tests' own, and tells the fault matrix of it:
// a ConfigMap that owns a Deployment and keeps one record at an outside TCP
// server. It shows that the matrix knows no kind of the product, and that it cuts
// a driver whose retries nobody above it sees.
package record
