package localcluster

import (
	"os"
	"path/filepath"
)

// layout is the folder of a cluster: where in it things are.
type layout string

func (l layout) pki() string        { return filepath.Join(string(l), "pki") }
func (l layout) etcdData() string   { return filepath.Join(string(l), "etcd") }
func (l layout) logs() string       { return filepath.Join(string(l), "logs") }
func (l layout) kubeconfig() string { return filepath.Join(string(l), "kubeconfig") }

func (l layout) log(component string) string {
	return filepath.Join(l.logs(), component+".log")
}

func (l layout) kubeconfigOf(component string) string {
	return filepath.Join(l.pki(), component+".kubeconfig")
}

func (l layout) auditPolicy(opts Options) string {
	if opts.AuditPolicy != "" {
		return opts.AuditPolicy
	}
	return filepath.Join(string(l), "audit-policy.yaml")
}

// everyRequestOnce is the audit policy for counting requests.
const everyRequestOnce = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// prepare makes the folders and the files that do not depend on ports.
func (l layout) prepare(opts Options) error {
	if err := os.MkdirAll(l.logs(), 0o700); err != nil {
		return err
	}
	if opts.AuditLog != "" && opts.AuditPolicy == "" {
		return os.WriteFile(l.auditPolicy(opts), []byte(everyRequestOnce), 0o600)
	}
	return nil
}
