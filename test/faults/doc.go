// Package faults is the fault matrix: it runs lives of an operator's objects
// against the real API server and an outside of the kind's own, once for every
// effect that the operator has and every way in which that effect can go wrong,
// and judges each run by a fixed set of oracles.
//
// It knows no kind. An [Adapter] says what the users of a kind do and what is to
// come of it, how its operator is run, and what there is outside; [Run] does the
// rest. Nothing names a single call of the operator: the plans are generated from
// a run without faults, so a new call is covered as soon as it is made.
// See docs/faults.md for how to run it and how to read a failure.
package faults
