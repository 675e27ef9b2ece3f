// Package controllers is the list of the API groups that the operator works
// for: one line each.
package controllers

import (
	"avalonhosting.example/bucketoperator/internal/controllers/storagegroup"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// Definitions are the API groups.
var Definitions = []operator.Definition{
	storagegroup.Definition,
}
