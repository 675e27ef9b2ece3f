package main

import "fmt"

// Targets of the counts. See docs/performance.md for why they can be no lower.
const (
	targetWrites       = 4.0
	targetPasses       = 1.2
	targetCreateCalls  = 1.0
	targetDeleteWrites = 2.0
	targetDeleteCalls  = 2.0
)

// judge notes the counts that are over their targets.
func (r *report) judge() {
	for _, s := range r.Sizes {
		check := func(what string, have, target float64) {
			if have > target {
				r.Over = append(r.Over, fmt.Sprintf("%d buckets, %s: %.3f, target %.3g", s.N, what, have, target))
			}
		}
		n := float64(s.N)
		check("create: writes a bucket", s.worst(writes), targetWrites)
		check("create: conflicts", s.worst(conflicts)*n, 0)
		check("create: passes a bucket", s.worst(passes), targetPasses)
		check("create: provider calls a bucket", s.worst(providerCalls), targetCreateCalls)
		check("quiet: writes", float64(s.Life.Idle.Writes), 0)
		check("quiet: passes", float64(s.Life.Idle.Passes), 0)
		check("quiet: provider calls", float64(providerCalls(s.Life.Idle.counts)), 0)
		check("restart: writes", float64(s.Life.Restart.Writes), 0)
		check("restart: provider calls", float64(providerCalls(s.Life.Restart.counts)), 0)
		check("Secret of some changes: passes", float64(s.Life.Secret.Passes), float64(s.Life.Sharing))
		check("delete: writes a bucket", float64(s.Life.Delete.Writes)/n, targetDeleteWrites)
		check("delete: provider calls a bucket", float64(providerCalls(s.Life.Delete.counts))/n, targetDeleteCalls)
	}
}
