// Package charts holds the project's Helm chart, and what proves that it gives
// the same as the manifests in config/.
package charts
