// Package kinds has a folder for each kind of the tests' own: kinds that never
// ship, and that are built as docs/adding-a-kind.md says, to prove that it takes
// no more. Beside the kind itself a folder has its types, in api, its generated
// CRD, in crd, and its adapter, which tells the fault matrix of it.
package kinds
