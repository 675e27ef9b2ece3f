package egress

import "context"

type yieldKey struct{}

// WithYield returns a context whose calls give their worker back while they wait
// for an answer from outside.
func WithYield(ctx context.Context, yield func() (resume func())) context.Context {
	return context.WithValue(ctx, yieldKey{}, yield)
}

// Yield gives the worker back, if ctx has one to give, until resume is called.
func Yield(ctx context.Context) (resume func()) {
	if yield, ok := ctx.Value(yieldKey{}).(func() func()); ok {
		return yield()
	}
	return func() {}
}
