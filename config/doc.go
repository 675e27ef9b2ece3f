// Package config holds the manifests, and what proves that they are as they
// should be.
package config
