// Package config holds the manifests, and what proves that they are as they
// should be.
package config

import _ "embed"

// ManagerRole is the ClusterRole of what the operator may do, as YAML. It is
// generated from the markers in internal/controllers.
//
//go:embed rbac/role.yaml
var ManagerRole []byte
