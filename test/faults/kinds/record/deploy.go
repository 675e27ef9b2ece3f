package record

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"avalonhosting.example/bucketoperator/internal/engine/child"
	recordv1 "avalonhosting.example/bucketoperator/test/faults/kinds/record/api/v1"
)

// deploy keeps the Deployment of what reads the text.
func (r *run) deploy(ctx context.Context) error {
	_, err := child.Apply(ctx, r.pass, child.Applied[*appsv1.Deployment]{
		Name: r.record.Name,
		Intents: []child.Intent[*appsv1.Deployment]{{
			Fields: r.readers(),
			Extract: func(live *appsv1.Deployment, manager string) (any, error) {
				return appsv1ac.ExtractDeployment(live, manager)
			},
		}},
		Conflict: recordv1.ReasonDeploymentConflict,
		Metadata: child.Inherited(r.record.Spec.InheritedMetadata),
	})
	return err
}

// readers is what is ours of the Deployment. It has no replicas: no node runs it
// in the tests.
func (r *run) readers() *appsv1ac.DeploymentApplyConfiguration {
	app := map[string]string{"app": r.record.Name}
	return appsv1ac.Deployment(r.record.Name, r.record.Namespace).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(0).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(app)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(app).WithSpec(corev1ac.PodSpec().
			WithContainers(corev1ac.Container().WithName("reader").WithImage("reader.example/reader:v1")))))
}
