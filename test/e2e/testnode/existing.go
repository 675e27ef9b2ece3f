package testnode

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// What an installation of the operator shows by.
const (
	operatorNamespace = "bucketoperator-system"
	operatorAPI       = "storage.avalonhosting.example/v1"
)

// lookTimeout bounds the look at a cluster that may not answer.
const lookTimeout = 30 * time.Second

// refuseUsed fails on a cluster that has the operator, or its kinds: tests
// install it and remove it, with all objects of its kinds in all namespaces.
func refuseUsed(config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	const why = "these tests would remove it, with all buckets: use a cluster without it"
	switch _, err := client.CoreV1().Namespaces().Get(ctx, operatorNamespace, metav1.GetOptions{}); {
	case err == nil:
		return fmt.Errorf("the cluster has the namespace %s: %s", operatorNamespace, why)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for the operator: %w", err)
	}
	switch _, err := client.Discovery().ServerResourcesForGroupVersion(operatorAPI); {
	case err == nil:
		return fmt.Errorf("the cluster serves %s: %s", operatorAPI, why)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("looking for the operator's kinds: %w", err)
	}
	return nil
}
