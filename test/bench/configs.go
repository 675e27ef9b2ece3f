package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/programs"
)

// Names of BucketProviderConfigs, and of their Secrets.
const (
	sharedConfig = "shared"
	deadConfig   = "dead"
)

// configure gives a namespace its configurations: the default one and, if
// wanted, one with a Secret. They carry the finalizer that the operator would
// put there first: it is not their making that is measured.
func (w *world) configure(ctx context.Context, namespace string, shared bool) error {
	var objects []client.Object
	if w.qps > 0 {
		objects = append(objects, w.config(namespace, storagev1.DefaultBucketProviderConfigName, w.provider))
	}
	if shared {
		config := w.config(namespace, sharedConfig, w.provider)
		config.Spec.SecretRef.Name = sharedConfig
		objects = append(objects, config, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sharedConfig, Finalizers: []string{storagev1.ConfigFinalizer}},
			Data:       map[string][]byte{"apiKey": []byte("first")},
		})
	}
	for _, object := range objects {
		if err := w.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("configuring a namespace: %w", err)
		}
	}
	return nil
}

func (w *world) config(namespace, name string, p *programs.Provider) *storagev1.BucketProviderConfig {
	return &storagev1.BucketProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{storagev1.ConfigFinalizer}},
		Spec: storagev1.BucketProviderConfigSpec{
			Endpoint:  p.HostURL(),
			RateLimit: storagev1.RateLimit{QPS: int32(w.qps), Burst: int32(w.qps)},
		},
	}
}

// changeSecret changes the Secret of the shared configuration.
func (w *world) changeSecret(ctx context.Context, namespace string) error {
	secret := &corev1.Secret{}
	if err := w.admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: sharedConfig}, secret); err != nil {
		return fmt.Errorf("changing the Secret: %w", err)
	}
	secret.Data = map[string][]byte{"apiKey": []byte("second")}
	if err := w.admin.Update(ctx, secret); err != nil {
		return fmt.Errorf("changing the Secret: %w", err)
	}
	return nil
}
