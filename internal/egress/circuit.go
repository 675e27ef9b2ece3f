package egress

import "time"

const (
	// failuresToOpen is how many calls in a row must fail to reach the destination.
	failuresToOpen = 3
	minCoolDown    = time.Second
	maxCoolDown    = 30 * time.Second
)

// circuit stops calls to a destination that cannot be reached: a call that hangs
// until its timeout keeps others from theirs. After a cool-down, which doubles, one
// call at a time may try again. Why it is not a library's: docs/decisions/0014-egress.md.
type circuit struct {
	failures int
	coolDown time.Duration // 0 while closed
	retryAt  time.Time
	trying   bool
	failedAt time.Time
	last     error
}

// open tells whether calls are stopped, but for trials.
func (c *circuit) open() bool { return c.coolDown > 0 }

// refuse is why no call may be made now; nil when one may. It holds the last
// failure, so that what is made of it reads the same.
func (c *circuit) refuse(now time.Time) *Error {
	if !c.open() || (!c.trying && !now.Before(c.retryAt)) {
		return nil
	}
	return &Error{Class: Unreachable, Err: c.last}
}

// begin says that a call is made, and tells whether it is a trial.
func (c *circuit) begin() (trial bool) {
	c.trying = c.open()
	return c.trying
}

// forgettable tells whether the last failure is so long ago that it tells nothing any more.
func (c *circuit) forgettable(now time.Time) bool {
	return !c.trying && now.Sub(c.failedAt) > 10*maxCoolDown
}

// neither releases a trial that ended without telling anything.
func (c *circuit) neither(trial bool) {
	if trial {
		c.trying = false
	}
}

// failed opens the circuit, or keeps it open for longer after a trial. Calls
// that were under way when it opened change nothing.
func (c *circuit) failed(err error, trial bool, now time.Time) {
	c.last, c.failedAt = err, now
	switch {
	case trial:
		c.trying = false
		c.coolDown = min(2*c.coolDown, maxCoolDown)
	case c.open():
		return
	default:
		if c.failures++; c.failures < failuresToOpen {
			return
		}
		c.coolDown = minCoolDown
	}
	c.retryAt = now.Add(c.coolDown)
}
