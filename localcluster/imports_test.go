package localcluster

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLocalclusterImportsNothingOfTheOperator holds that it could be lifted out
// of this repository: not even its tests need anything else of this module.
func TestLocalclusterImportsNothingOfTheOperator(t *testing.T) {
	t.Parallel()
	const module = "avalonhosting.example/bucketoperator/"
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "./...")
	command.Env = append(command.Environ(), "GOFLAGS=", "GOOS=linux") // a node is for Linux alone
	out, err := command.Output()
	if err != nil {
		t.Fatalf("listing what localcluster imports: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		name = strings.TrimSuffix(name, ".test")
		if !strings.HasPrefix(name, module) {
			continue
		}
		seen++
		if name != module+"localcluster" && !strings.HasPrefix(name, module+"localcluster/") {
			t.Errorf("localcluster imports %s", name)
		}
	}
	if seen == 0 {
		t.Error("go list names no package of this module: nothing was tested")
	}
}
