package record

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"avalonhosting.example/bucketoperator/internal/engine"
)

// remove deletes what the server keeps and makes sure that it is gone.
func (r *run) remove(ctx context.Context) error {
	logf.FromContext(ctx).Info("Deleting the record")
	if err := r.Servers.Delete(ctx, r.target(), r.key()); err != nil {
		return failed(err)
	}
	kept, err := r.Servers.Get(ctx, r.target(), r.key())
	if err != nil {
		return failed(err)
	}
	if kept != (Value{}) {
		return engine.InProgress(engine.ReasonDeleting, "the server is deleting the record").After(r.Poll)
	}
	return nil
}
