// Package stories_test runs the stories of this folder, one a subfolder: what a
// user of the operator sees, told in the language of Chainsaw.
package stories_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	testnode.Main(m)
}

// chainsawEnv names the program, which hack/e2e.sh builds.
const chainsawEnv = "CHAINSAW"

func TestStories(t *testing.T) {
	installation.Install(t)
	provider := installation.StartProvider(t, "--activate-after=1s")
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("endpoint: "+provider.Endpoint()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stories, err := filepath.Glob("*/chainsaw-test.yaml")
	if err != nil || len(stories) == 0 {
		t.Fatalf("there are no stories (%v)", err)
	}
	for _, story := range stories {
		folder := filepath.Dir(story)
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			output, err := chainsaw(t, "test", folder, "--config=.chainsaw.yaml", "--values="+values, "--no-color")
			if err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

func chainsaw(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	program := os.Getenv(chainsawEnv)
	if program == "" {
		t.Fatalf("%s names no program: `make e2e` builds Chainsaw and names it", chainsawEnv)
	}
	output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return bytes.TrimSpace(output), err
}
