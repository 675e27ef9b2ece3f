package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxReasons bounds the series of a kind for each status of Ready, whatever
	// somebody may have written into statuses.
	maxReasons = 50
	// otherReasons stands for the reasons beyond maxReasons.
	otherReasons = "Other"
)

// readiness is the part of Ready that objects are counted by.
type readiness struct {
	status metav1.ConditionStatus
	reason string
}

// objectStats is what the objects of a kind add up to.
type objectStats struct {
	counts map[readiness]int
	// notReady is since when the object is not ready that has not been so for longest.
	notReady map[readiness]time.Time
	// deletion is when the oldest deletion was asked for; zero if none is under way.
	deletion time.Time

	reasons map[metav1.ConditionStatus]int
}

func newObjectStats() *objectStats {
	return &objectStats{
		counts: map[readiness]int{}, notReady: map[readiness]time.Time{},
		reasons: map[metav1.ConditionStatus]int{},
	}
}

func (c *objectStats) add(object Object) {
	of, since := readinessOf(object)
	of = c.bounded(of)
	c.counts[of]++
	switch deleted := object.GetDeletionTimestamp(); {
	case !deleted.IsZero():
		c.deletion = earlier(c.deletion, deleted.Time)
	case of.status != metav1.ConditionTrue:
		c.notReady[of] = earlier(c.notReady[of], since)
	}
}

// bounded is of, or what stands for it when there are too many reasons.
func (c *objectStats) bounded(of readiness) readiness {
	if _, known := c.counts[of]; known {
		return of
	}
	if c.reasons[of.status] == maxReasons {
		of.reason = otherReasons
		return of
	}
	c.reasons[of.status]++
	return of
}

// readinessOf also tells since when it is so. An object that no pass has
// reported on is as it is since its creation.
func readinessOf(object Object) (readiness, time.Time) {
	if ready := meta.FindStatusCondition(object.GetConditions(), ConditionReady); ready != nil {
		return readiness{ready.Status, ready.Reason}, ready.LastTransitionTime.Time
	}
	return readiness{metav1.ConditionUnknown, ReasonPending}, object.GetCreationTimestamp().Time
}

// earlier is the earlier of two times, of which the first may be zero: none yet.
func earlier(known, other time.Time) time.Time {
	if known.IsZero() || other.Before(known) {
		return other
	}
	return known
}
