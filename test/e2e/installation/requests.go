package installation

import (
	"os"
	"slices"
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/test/e2e/audit"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// auditLogEnv names the audit log of the node's API server.
const auditLogEnv = "BUCKETOPERATOR_E2E_AUDIT_LOG"

// AuditLog is the path of the audit log of the project's own node.
func AuditLog() string { return os.Getenv(auditLogEnv) }

// Requests are all that the API server of the project's own node was asked since
// a time. It skips the test on another cluster.
func Requests(t testing.TB, since time.Time) []audit.Request {
	t.Helper()
	testnode.NeedsOwnNode(t, "reading the audit log")
	log, err := os.Open(AuditLog())
	if err != nil {
		t.Fatalf("%s names the audit log: %v", auditLogEnv, err)
	}
	defer log.Close()
	all, err := audit.Read(log)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r audit.Request) bool { return r.Received.Before(since) })
}
