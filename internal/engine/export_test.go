package engine

// SetQueue stands in for the queue that a controller gives the reconciler.
func (r *Reconciler[T]) SetQueue(q queue) { r.queue = q }

// When is the queue's question for the delay after a pass that has failed.
func (r *Reconciler[T]) When() *schedule { return r.schedule }

// Monitors are the manager's to start.
func (r *Reconciler[T]) Monitors() *monitors { return r.monitors }
