package egress

import "time"

// Outcome is what a call that has ended shows of its destination. The zero value
// shows nothing: the caller gave up, or never got as far as to send.
type Outcome struct {
	answered bool
	quiet    time.Duration
	failure  error
}

// Answered is that the destination answered. An answer that tells of an error is one.
func Answered() Outcome { return Outcome{answered: true} }

// AnsweredQuiet is that the destination answered that it wants no calls for a while.
func AnsweredQuiet(quiet time.Duration) Outcome { return Outcome{answered: true, quiet: quiet} }

// Failed is that the destination was not reached, or did not answer in time. The
// error is what calls are refused with while the circuit is open, word for word.
func Failed(err error) Outcome { return Outcome{failure: err} }
