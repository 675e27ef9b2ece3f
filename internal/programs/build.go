package programs

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// Build builds the operator (manager) and the provider (mockprovider) of the
// checkout at root into a folder.
func Build(ctx context.Context, root, into string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", into, "./cmd/manager", "./cmd/mockprovider")
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the operator and the provider: %w\n%s", err, bytes.TrimSpace(output))
	}
	return nil
}
