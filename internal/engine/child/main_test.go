package child_test

import (
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testplane.Main(m)
}
