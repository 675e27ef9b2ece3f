package record

import (
	"context"
	"errors"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/engine"
	recordv1 "avalonhosting.example/bucketoperator/test/faults/kinds/record/api/v1"
)

// keep has the server keep the text. Before the first call that makes something
// there, finalizer and key are on the Record.
func (r *run) keep(ctx context.Context) error {
	isLatest, err := r.pass.EnsureFinalizer(ctx, map[string]string{recordv1.KeyAnnotation: r.key()})
	if err != nil {
		return err
	}
	r.pass.Resynced()
	kept, err := r.Servers.Get(ctx, r.target(), r.key())
	if err != nil {
		return failed(err)
	}
	if want := (Value{Version: r.record.Generation, Text: r.record.Spec.Text}); kept != want {
		if err := r.write(ctx, want, isLatest); err != nil {
			return err
		}
	}
	r.record.Status.Key = r.key()
	return nil
}

// write overwrites what the server keeps, unless the Record has changed since
// the pass has read it. The version keeps a leader that was held up just here from
// taking back what its successor has written.
func (r *run) write(ctx context.Context, want Value, isLatest bool) error {
	if !isLatest {
		if err := r.pass.ConfirmLatest(ctx); err != nil {
			return err
		}
	}
	logf.FromContext(ctx).Info("Writing the record")
	return failed(r.Servers.Put(ctx, r.target(), r.key(), want))
}

// failed turns what came of a call into what the engine is to do.
func failed(err error) error {
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return engine.Failed(recordv1.ReasonServerRefused, refused)
	}
	if e, ok := errors.AsType[*egress.Error](err); ok {
		switch e.Class {
		case egress.HeldBack:
			return engine.Requeue(e.After)
		case egress.AddressRefused:
			return engine.Failed(recordv1.ReasonAddressRefused, e)
		case egress.Unreachable, egress.Fenced:
		}
	}
	return engine.Failed(recordv1.ReasonServerUnavailable, err)
}
