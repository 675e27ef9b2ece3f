package egress

import "context"

type yieldKey struct{}

// WithYield returns a context whose calls give their worker back while they
// wait, as a goroutine in a system call gives back its processor. yield gives the
// worker back; resume takes one again, and may wait for it.
func WithYield(ctx context.Context, yield func() (resume func())) context.Context {
	return context.WithValue(ctx, yieldKey{}, yield)
}

// Yield gives the worker back, if ctx has one to give, until resume is called.
func Yield(ctx context.Context) (resume func()) {
	if yield, ok := ctx.Value(yieldKey{}).(func() (resume func())); ok {
		return yield()
	}
	return func() {}
}

// worker gives the worker of a pass back once, however often it is asked to.
type worker struct {
	ctx    context.Context
	resume func()
}

func (w *worker) yield() {
	if w.resume == nil {
		w.resume = Yield(w.ctx)
	}
}

func (w *worker) takeAgain() {
	if w.resume != nil {
		w.resume()
	}
}
