// Package faults is the fault matrix: it runs lives of StorageBuckets and
// BucketProviderConfigs against the real API server and a mock provider, once
// for every effect that the operator has and every way in which that effect can
// go wrong, and judges each run by a fixed set of oracles.
//
// Nothing in it names a single call of the operator: the plans are generated
// from a run without faults, so a new call is covered as soon as it is made.
// See docs/faults.md for how to run it and how to read a failure.
package faults
