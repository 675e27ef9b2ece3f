package storage

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/test/faults"
)

// The functions below say what is missing for a state that an act waits for;
// empty when nothing is.

func configReady(r *faults.Execution) string {
	config := faults.Of[*storagev1.BucketProviderConfig](r, kindConfig, configName)
	switch {
	case config == nil:
		return "no configuration"
	case config.Status.ObservedGeneration != config.Generation, !meta.IsStatusConditionTrue(config.Status.Conditions, "Ready"):
		return fmt.Sprintf("the configuration is not ready: %+v", config.Status)
	}
	return ""
}

// ready: the bucket is Ready at its generation, and what it stands for is there.
func ready(r *faults.Execution) string {
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	if bucket == nil {
		return "no bucket"
	}
	status := &bucket.Status
	if status.ObservedGeneration != bucket.Generation || !meta.IsStatusConditionTrue(status.Conditions, "Ready") {
		return fmt.Sprintf("the bucket is not ready: %+v", *status)
	}
	secret := faults.Of[*corev1.Secret](r, kindSecret, accessName)
	if secret == nil || string(secret.Data["id"]) != status.ID || len(secret.Data["uri"]) == 0 {
		return "the access Secret is not as it should be"
	}
	service := faults.Of[*corev1.Service](r, kindService, bucketName)
	if service == nil || len(service.Spec.Selector) > 0 || len(service.Labels) == 0 || fmt.Sprint(service.Spec.Ports[0].Port) != string(secret.Data["port"]) {
		return "the Service is not as it should be"
	}
	return ""
}

func provisioning(r *faults.Execution) string {
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	switch {
	case bucket == nil:
		return "no bucket"
	case bucket.Status.ID == "" || bucket.Status.Phase != storagev1.BucketPhaseProvisioning || !reasonIs(bucket, storagev1.ReasonProvisioning):
		return fmt.Sprintf("the bucket is not in the making: %+v", bucket.Status)
	}
	return ""
}

func refused(r *faults.Execution) string {
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	if bucket == nil || !meta.IsStatusConditionTrue(bucket.Status.Conditions, "Stalled") || !reasonIs(bucket, "SpecRefused") {
		return "the refusal is not reported"
	}
	return ""
}

func unresolved(r *faults.Execution) string {
	bucket := faults.Of[*storagev1.StorageBucket](r, kindBucket, bucketName)
	if bucket == nil || !reasonIs(bucket, storagev1.ReasonProviderNotFound) {
		return "the missing provider is not reported"
	}
	return ""
}

func reasonIs(bucket *storagev1.StorageBucket, reason string) bool {
	condition := meta.FindStatusCondition(bucket.Status.Conditions, "Ready")
	return condition != nil && condition.Reason == reason && condition.ObservedGeneration == bucket.Generation
}
