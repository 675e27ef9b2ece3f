package egress

// Fence answers with an error once this process has led and another may lead by
// now. Then nothing may be changed from here any more. Nil is no fence.
//
// It is asked at each write, and cannot be asked in the same instant as the
// operating system is: a process that is suspended between the two goes on to send
// what it was about to. That is one write, which began while it led.
type Fence func() error

// check is the fence's refusal, as an *Error.
func (f Fence) check() *Error {
	if f == nil {
		return nil
	}
	if err := f(); err != nil {
		return &Error{Class: Fenced, Err: err}
	}
	return nil
}
