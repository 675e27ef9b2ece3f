package provider

import (
	"time"
)

const (
	// failuresToOpen is how many calls in a row must fail to reach the provider.
	failuresToOpen = 3
	minCoolDown    = time.Second
	maxCoolDown    = 30 * time.Second
)

// circuit stops calls to a provider that cannot be reached: a call that hangs
// until its timeout holds a worker. After a cool-down, which doubles, one call
// at a time may try again.
type circuit struct {
	failures int
	coolDown time.Duration // 0 while closed
	retryAt  time.Time
	trying   bool
	last     *Error
}

// refuse is why no call may be made now; nil when one may. It repeats the last
// failure word for word, so that a condition made of it stays as it is.
func (c *circuit) refuse(now time.Time) error {
	if c.coolDown == 0 || (!c.trying && !now.Before(c.retryAt)) {
		return nil
	}
	refusal := *c.last
	refusal.Refused = true
	return &refusal
}

// begin says that a call is made, and tells whether it is a trial.
func (c *circuit) begin() (trial bool) {
	c.trying = c.coolDown > 0
	return c.trying
}

// reached closes the circuit.
func (c *circuit) reached() { *c = circuit{} }

// neither releases a trial that ended without telling anything.
func (c *circuit) neither(trial bool) {
	if trial {
		c.trying = false
	}
}

// failed opens the circuit, or keeps it open for longer after a trial. Calls
// that were under way when it opened change nothing.
func (c *circuit) failed(err *Error, trial bool, now time.Time) {
	c.last = err
	switch {
	case trial:
		c.trying = false
		c.coolDown = min(2*c.coolDown, maxCoolDown)
	case c.coolDown > 0:
		return
	default:
		if c.failures++; c.failures < failuresToOpen {
			return
		}
		c.coolDown = minCoolDown
	}
	c.retryAt = now.Add(c.coolDown)
}
