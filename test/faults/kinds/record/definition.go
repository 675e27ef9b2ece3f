package record

import (
	appsv1 "k8s.io/api/apps/v1"

	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/operator"
	recordv1 "avalonhosting.example/bucketoperator/test/faults/kinds/record/api/v1"
)

// Definition is that of the group faults.example.
var Definition = operator.Definition{
	Name:         "record",
	GroupVersion: recordv1.GroupVersion,
	AddToScheme:  recordv1.AddToScheme,
	Kinds: []operator.Kind{
		{Object: &recordv1.Record{}, List: &recordv1.RecordList{}, Transform: Traits.Compact},
	},
	Cached: []operator.Cached{
		{Object: &appsv1.Deployment{}, Select: operator.Own, Transform: child.KeepManagedFields()},
	},
	SetUp: setUp,
}
