// Package record is a kind of the tests' own, Record: a text that a server outside
// the cluster keeps, over TCP, and a Deployment of what reads it there. It is built
// as the product's kinds are: docs/adding-a-kind.md goes through it. Its adapter
// tells the fault matrix of it.
package record

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/engine"
	recordv1 "avalonhosting.example/bucketoperator/test/faults/kinds/record/api/v1"
)

// Kind reconciles Records.
type Kind struct {
	// Servers calls servers of records.
	Servers *Client
	// Poll is the time between two looks at a record that the server is deleting.
	Poll time.Duration
}

// New is an empty Record.
func (k *Kind) New() *recordv1.Record { return &recordv1.Record{} }

// Steps make a Record real.
func (k *Kind) Steps(pass *engine.Pass, record *recordv1.Record) []engine.Step {
	r := &run{Kind: k, pass: pass, record: record}
	return []engine.Step{
		{Condition: recordv1.ConditionKept, Independent: true, Do: step(r.keep, recordv1.ReasonWritten)},
		{Condition: recordv1.ConditionDeployed, Do: step(r.deploy, recordv1.ReasonWritten)},
	}
}

// Teardown deletes what the server keeps. The Deployment goes with its owner.
func (k *Kind) Teardown(pass *engine.Pass, record *recordv1.Record) []engine.Step {
	r := &run{Kind: k, pass: pass, record: record}
	return []engine.Step{{Condition: recordv1.ConditionRecordDeleted, Do: step(r.remove, recordv1.ReasonRecordDeleted)}}
}

// Summarize leaves Ready as the engine makes it of the steps.
func (k *Kind) Summarize(*recordv1.Record, *engine.Summary) {}

// Gone frees what is kept in memory for a Record that is no more.
func (k *Kind) Gone(_ context.Context, name types.NamespacedName) error {
	k.Servers.Forget(name)
	return nil
}

// step is a step that is done, for the given reason, when do returns no error.
func step(do func(context.Context) error, reason string) func(context.Context) engine.Outcome {
	return func(ctx context.Context) engine.Outcome { return engine.From(do(ctx), engine.Done(reason)) }
}

// run is one pass over one Record.
type run struct {
	*Kind
	pass   *engine.Pass
	record *recordv1.Record
}

// key is what the server knows the text by. A Record that is made anew has another.
func (r *run) key() string { return string(r.record.UID) }

// target is where the text is kept.
func (r *run) target() Target {
	return Target{Record: client.ObjectKeyFromObject(r.record), Address: r.record.Spec.Server}
}
