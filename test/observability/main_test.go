// Package observability_test looks at the operator as those do who watch over
// it: Prometheus, its alerts and a dashboard; tools that wait for objects, as
// kubectl, Flux and Argo CD do; and somebody who reads the logs.
//
// The parts are real: the operator as a process of its own, an API server, and
// Prometheus and promtool of Debian's package prometheus.
package observability_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // or it complains that there is none
	testplane.Main(m)
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
