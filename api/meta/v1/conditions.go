package v1

// Conditions of every object.
const (
	// ConditionReady is True when the object is as its spec wants it, False
	// when it is not, Unknown while that is not known yet.
	ConditionReady = "Ready"
	// ConditionReconciling is present, and True, while the operator is at work
	// or will try again by itself (kstatus).
	ConditionReconciling = "Reconciling"
	// ConditionStalled is present, and True, while somebody has to change
	// something before the operator can go on (kstatus).
	ConditionStalled = "Stalled"
	// ConditionDeletionBlocked is present, and True, while a deletion cannot go on.
	ConditionDeletionBlocked = "DeletionBlocked"
)

// Reasons that conditions of every kind may have.
const (
	// ReasonAvailable goes with Ready=True, unless the kind has a reason of its own.
	ReasonAvailable = "Available"
	// ReasonPending goes with a condition that nothing is known of yet, as
	// something before it is not done.
	ReasonPending = "Pending"
	// ReasonDeleting goes with Ready=False while the object is on its way out.
	ReasonDeleting = "Deleting"
	// ReasonError goes with an error that has no reason of its own.
	ReasonError = "Error"
	// ReasonChildTerminating: an owned object is being deleted, and is made again
	// when it is gone.
	ReasonChildTerminating = "ChildTerminating"
	// ReasonPredecessorRemains: an owned object of a deleted object of the same
	// name is about to be collected.
	ReasonPredecessorRemains = "PredecessorRemains"
	// ReasonChildRefused: the API server, or a policy, refuses an owned object.
	ReasonChildRefused = "ChildRefused"
	// ReasonChildFailed: an owned object could not be read or written.
	ReasonChildFailed = "ChildFailed"
	// ReasonNamespaceTerminating: an owned object cannot be made as the namespace
	// is being deleted.
	ReasonNamespaceTerminating = "NamespaceTerminating"
)
