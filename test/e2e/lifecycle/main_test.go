// Package lifecycle_test rehearses what is done to the operator itself: upgrades
// from the last release, and uninstalls in the right and in the wrong order.
// Each test has the cluster for itself.
package lifecycle_test

import (
	"testing"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	testnode.Main(m)
}
