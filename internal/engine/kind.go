// Package engine is the reconcile loop, written once for every kind.
//
// Steps do; the engine reports. A kind is an ordered list of small steps. A
// step makes one thing real, and returns an Outcome that says how it went. The engine
// does the rest in one place: conditions, the status write (once a pass, only
// when it differs), finalizers, events on change, requeues, backoff, metrics.
package engine

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
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
	// there; when all of it is done the engine takes the finalizer off. The
	// conditions of its steps stand beside those of Steps, so they need types of
	// their own, such as BucketDeleted; a step without one is told of in
	// DeletionBlocked alone.
	Teardown(pass *Pass, obj T) []Step
	// Summarize puts what the pass comes to into the kind's own status fields,
	// a phase for one, and may change status, reason and message of Ready. It
	// runs after the steps.
	Summarize(obj T, summary *Summary)
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

// Traits are the names by which the engine handles the objects of a kind.
type Traits struct {
	// Name is the kind's, as in metrics: StorageBucket.
	Name string
	// Finalizer is what Pass.EnsureFinalizer puts on an object.
	Finalizer string
	// Annotations are those that the operator itself keeps on its objects: a
	// pass relies on them, and one that somebody changes or removes starts a pass.
	Annotations []string
	// Triggers are annotations of users that start a pass when they are set,
	// changed or removed on a live object.
	Triggers []string
}

// Step makes one thing real.
type Step struct {
	// Condition is the type of the condition that tells how the step fared.
	// Ready is the summary of all of them.
	Condition string
	// InProgress is the status of the condition, and so of Ready, while the step
	// is in progress: Unknown when empty.
	InProgress metav1.ConditionStatus
	// Independent lets the following steps run although this one is not done.
	Independent bool
	// Concurrent lets the step run at the same time as its neighbours that are
	// Concurrent too. Each is Independent, touches only fields of its own, and
	// may not write to the object itself: what a Pass offers for that fails.
	Concurrent bool
	// Do makes it real.
	Do func(ctx context.Context) Outcome
}

// Summary is what a pass comes to.
type Summary struct {
	// Deleting is true when the object is on its way out.
	Deleting bool
	// Stalled is true when somebody has to change something first.
	Stalled bool
	// Status, Reason and Message are those of Ready: True with the reason
	// Available when all is done, else those of the first step that is not.
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Conditions and reasons that the engine uses on every object: see api/meta/v1.
const (
	ConditionReady           = apimeta.ConditionReady
	ConditionReconciling     = apimeta.ConditionReconciling
	ConditionStalled         = apimeta.ConditionStalled
	ConditionDeletionBlocked = apimeta.ConditionDeletionBlocked

	ReasonReady    = apimeta.ReasonAvailable
	ReasonPending  = apimeta.ReasonPending
	ReasonDeleting = apimeta.ReasonDeleting
	ReasonError    = apimeta.ReasonError
)

// Label and LabelValue mark what the operator owns: its informers of owned
// kinds select on them.
const (
	Label      = "app.kubernetes.io/managed-by"
	LabelValue = "bucketoperator"
)
