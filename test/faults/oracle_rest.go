package faults

import (
	"context"
	"fmt"
	"time"
)

// stabilityResync makes an incarnation compare all the time.
const stabilityResync = 60 * time.Millisecond

// restingPasses is how many comparisons a settled state has to stand.
const restingPasses = 3

// checkRest: a restart and several comparisons with the outside, all without
// an effect, and no object is another version after them.
func (r *Execution) checkRest(act Act) {
	versions := r.versions()
	effects, reads := r.counts()
	resync := r.resync
	// What has something outside is compared. Without that there is nothing to count, so
	// rest is all that can be waited for; and a comparison may be another try.
	r.resync = 0
	wantReads := 0
	if r.adapter.Compares(r) {
		r.resync, wantReads = stabilityResync, restingPasses
	}
	r.restart()
	r.eventually(func(context.Context) string {
		now, seen := r.counts()
		switch {
		case now > effects:
			return "" // judged below
		case seen < reads+wantReads:
			return fmt.Sprintf("%d of %d comparisons", seen-reads, wantReads)
		case wantReads == 0 && !r.gate.quiet(2*breath, false):
			return "not at rest"
		}
		return ""
	})
	r.flush()
	if now, _ := r.counts(); now > effects {
		for _, event := range r.gate.trace() {
			if event.effective() && event.Epoch == r.life.epoch {
				r.violation.add("3 stability", fmt.Sprintf("after act %q, a restart has an effect: %s", act.Name, event))
			}
		}
	}
	for object, version := range r.versions() {
		if versions[object] != version {
			r.violation.add("3 stability", fmt.Sprintf("after act %q, %s was %s and is %s after a restart", act.Name, object, versions[object], version))
		}
	}
	if !r.plan.faultless() {
		return // only the teardown is left
	}
	r.resync = resync
	r.operator.Stop(r.T)
	begun := r.log.length()
	r.restart()
	// A first pass that comes after the next act would do for the event of that act.
	r.eventually(func(context.Context) string {
		for _, resource := range r.adapter.Resources {
			for name := range r.recorder.all(resource.Name) {
				if resource.Reconciled && !r.log.passed(begun, resource.Kind, name) {
					return fmt.Sprintf("no pass over %s %s since the start", resource.Kind, name)
				}
			}
		}
		if !r.gate.quiet(breath, r.resync == 0) {
			return "not at rest"
		}
		return ""
	})
}

// versions are the resourceVersions of all objects.
func (r *Execution) versions() map[string]string {
	versions := map[string]string{}
	for _, resource := range r.adapter.Resources {
		for name, object := range r.recorder.all(resource.Name) {
			versions[resource.Name+"/"+name] = object.GetResourceVersion()
		}
	}
	return versions
}

// effective tells whether the event may have changed something.
func (e Event) effective() bool {
	return !e.Read && (e.Outside() || e.Status > 0 && e.Status < 300)
}

// counts are the effects and the calls that read outside, so far.
func (r *Execution) counts() (effects, reads int) {
	for _, event := range r.gate.trace() {
		switch {
		case event.effective():
			effects++
		case event.Outside():
			reads++
		}
	}
	return effects, reads
}
