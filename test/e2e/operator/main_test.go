package operator_test

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
