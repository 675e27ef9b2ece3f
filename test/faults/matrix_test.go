package faults_test

import (
	"testing"

	"avalonhosting.example/bucketoperator/test/faults"
	"avalonhosting.example/bucketoperator/test/faults/storage"
)

// adapters has a line for each kind.
var adapters = []*faults.Adapter{
	storage.Adapter(),
}

func TestMain(m *testing.M) { faults.Main(m) }

// TestMatrix runs the plans of all kinds: a share of them, unless all are asked for.
func TestMatrix(t *testing.T) { faults.Run(t, adapters...) }

// TestMutantsAreKilled plants bugs into the product, each on its own, and fails
// for every one that the matrix does not find.
func TestMutantsAreKilled(t *testing.T) { faults.KillMutants(t, "TestMatrix", adapters...) }
