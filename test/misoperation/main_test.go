// Package misoperation_test does to the operator what users do by mistake, and
// some on purpose: every field of every kind is left out, null, of another
// type, out of bounds, or holds what does not belong there. The mistakes are
// generated from the schemas that the API server has, so that a new field
// cannot be forgotten.
//
// Each mistake must end in one of three ways: refused with the field's path;
// made real; or told in a condition that names the field or the cause. Putting
// it right must be enough to get a Ready object, and the bucket that was there
// before must be there still.
package misoperation_test

import (
	"testing"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestMain(m *testing.M) { testplane.Main(m) }
