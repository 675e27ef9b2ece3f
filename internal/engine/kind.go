// Package engine is the reconcile loop, written once for every kind.
//
// Steps do; the engine reports. A kind is an ordered list of small steps. A
// step makes one thing real, or returns an error that says why not. The engine
// does the rest in one place: conditions, the status write (once a pass, only
// when it differs), finalizers, events on change, requeues, backoff, metrics.
package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is what an API type must offer to be reconciled by the engine.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
	SetObservedGeneration(generation int64)
}

// Kind is how objects of one kind are made real and undone.
type Kind[T Object] interface {
	// New is an empty object.
	New() T
	// Steps make obj real, in order. The first that is not done ends the pass,
	// unless it is Independent.
	Steps(pass *Pass, obj T) []Step
	// Teardown undoes what must be gone before obj is: what lives outside the
	// cluster, or what others still use. It runs only while the finalizer is
	// there; when all of it is done the engine takes the finalizer off.
	Teardown(pass *Pass, obj T) []Step
	// Summarize sets what the kind's status says in summary, its phase for
	// one, and gives the message of a Ready object. It runs after the steps.
	Summarize(obj T, outcome Outcome) string
}

// LogValuer is a Kind whose log lines carry more than kind, namespace and
// name: key and value of what its objects are called outside the cluster.
type LogValuer[T Object] interface {
	LogValues(obj T) []any
}

// Forgetter is a Kind that keeps something for its objects besides them: Gone
// is called when a pass finds that there is no object of that name any more.
type Forgetter interface {
	Gone(ctx context.Context, name types.NamespacedName) error
}

// Step makes one thing real.
type Step struct {
	// Condition is the type of the condition that tells how the step fared.
	// Ready is the summary of all of them.
	Condition string
	// Reason is the condition's reason once the step is done.
	Reason string
	// Independent lets the following steps run although this one is not done.
	Independent bool
	// Concurrent lets the step run at the same time as its neighbours that are
	// Concurrent too; each is Independent, and touches only fields of its own.
	Concurrent bool
	// Do makes it real. Any error that does not come from this package's
	// constructors counts as Because("Error", err).
	Do func(ctx context.Context) error
}

// Outcome is how a pass ended.
type Outcome struct {
	// Deleting is true when the object is on its way out.
	Deleting bool
	// Stalled is true when somebody has to change something first.
	Stalled bool
}

// Conditions that the engine keeps on every object.
const (
	// ConditionReady is True when the object is as its spec wants it, False
	// when it is not, Unknown while that is not known yet.
	ConditionReady = "Ready"
	// ConditionReconciling is present, and True, while the engine is at work
	// or will try again by itself (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present, and True, while somebody has to change
	// something before the engine can go on (kstatus).
	ConditionStalled = "Stalled"
	// ConditionDeletionBlocked is present, and True, while a deletion cannot go on.
	ConditionDeletionBlocked = "DeletionBlocked"
)

// Reasons that the engine uses on every object.
const (
	// ReasonReady goes with Ready=True.
	ReasonReady = "Available"
	// ReasonPending goes with a condition whose step was not reached yet.
	ReasonPending = "Pending"
	// ReasonDeleting goes with Ready=False while the object is on its way out.
	ReasonDeleting = "Deleting"
	// ReasonError goes with an error that has no reason of its own.
	ReasonError = "Error"
)
