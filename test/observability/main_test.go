// Package observability_test looks at the operator as those do who watch over
// it: Prometheus, its alerts and a dashboard; tools that wait for objects, as
// kubectl, Flux and Argo CD do; and somebody who reads the logs.
//
// The parts are real: the operator as a process of its own, an API server, and
// Prometheus and promtool of Debian's package prometheus.
package observability_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // or it complains that there is none
	testplane.Main(m)
}

// patience is far longer than anything takes here.
const patience = 2 * time.Minute

// eventually waits until condition returns an empty string, and fails with
// what it last returned otherwise.
func eventually(t *testing.T, condition func(ctx context.Context) string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("still not so after %s: %s", patience, last)
	}
}

// inModule is the path of a file of this project.
func inModule(t *testing.T, elements ...string) string {
	t.Helper()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, elements...)...)
}

// ofPrometheus is the path of a program of Debian's package prometheus.
func ofPrometheus(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing: install Debian's package prometheus, by `apt-get install prometheus`", program)
	}
	return path
}
