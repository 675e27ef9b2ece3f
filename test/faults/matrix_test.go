package faults_test

import (
	"slices"
	"testing"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/test/faults"
	"avalonhosting.example/bucketoperator/test/faults/kinds/record"
	"avalonhosting.example/bucketoperator/test/faults/storage"
)

// definitions are the API groups of the product and, by a line each, those of the
// tests' own.
var definitions = append(slices.Clone(controllers.Definitions),
	record.Definition,
)

// adapters has a line for each kind.
var adapters = []*faults.Adapter{
	storage.Adapter(),
	record.Adapter(definitions),
}

func TestMain(m *testing.M) { faults.Main(m) }

// TestMatrix runs the plans of all kinds: a share of them, unless all are asked for.
func TestMatrix(t *testing.T) { faults.Run(t, adapters...) }

// TestMutantsAreKilled plants bugs into the product, each on its own, and fails
// for every one that the matrix does not find.
func TestMutantsAreKilled(t *testing.T) { faults.KillMutants(t, "TestMatrix", adapters...) }
