package gobuild

import (
	"io"
	"testing"
)

func TestReportCountsPackagesAndKeepsErrors(t *testing.T) {
	t.Parallel()
	r := startReport(io.Discard, "small", "a moment", 3)
	defer r.stop()
	for _, part := range []string{"errors\ninternal/", "abi\n# broken\nmain.go:1:1: syntax ", "error"} {
		if _, err := io.WriteString(r, part); err != nil {
			t.Fatal(err)
		}
	}
	if r.compiled != 2 {
		t.Errorf("%d packages counted, want 2", r.compiled)
	}
	if got, want := r.lastLines(), "# broken\nmain.go:1:1: syntax error"; got != want {
		t.Errorf("last lines %q, want %q", got, want)
	}
}
