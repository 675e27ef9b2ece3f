package record

import (
	appsv1 "k8s.io/api/apps/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/operator"
	recordv1 "avalonhosting.example/bucketoperator/test/faults/kinds/record/api/v1"
)

// +kubebuilder:rbac:groups=faults.example,resources=records,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=faults.example,resources=records/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch

// Traits are how the engine handles Records.
var Traits = engine.Traits{
	Name: "Record", Finalizer: recordv1.RecordFinalizer, Annotations: []string{recordv1.KeyAnnotation},
}

// setUp adds the controller to the manager.
func setUp(s *operator.Setup) error {
	kind := &Kind{Servers: NewClient(s.Options.Egress), Poll: s.Options.Poll.Min}
	controller := ctrl.NewControllerManagedBy(s.Manager).
		Named("record").
		For(&recordv1.Record{}, builder.WithPredicates(engine.Changed(Traits))).
		Owns(&appsv1.Deployment{}, builder.WithPredicates(child.Harmed()))
	return engine.NewReconciler(kind, Traits, s.Engine).Complete(s.Manager, controller, s.CallingController())
}
