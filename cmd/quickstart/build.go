package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
)

// build builds the operator and the provider into the folder. They are
// programs of their own, as they are anywhere else.
func build(ctx context.Context, o options, into string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", into, "./cmd/manager", "./cmd/mockprovider")
	cmd.Dir = o.root
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the operator and the provider: %w\n%s", err, bytes.TrimSpace(output))
	}
	return nil
}
