package child_test

import (
	"testing"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestMain(m *testing.M) { testplane.Main(m) }
