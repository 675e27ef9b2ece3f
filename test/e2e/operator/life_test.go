package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// restricted proves that the namespace enforces what the operator's pods keep to.
func (s *suite) restricted(t *testing.T) {
	err := s.client.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: "privileged"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: installation.Image, SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
		}}},
	}, client.DryRunAll)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("a privileged pod was met with %v, want it refused by the level restricted", err)
	}
	pods := &corev1.PodList{}
	if err := s.client.List(t.Context(), pods, client.InNamespace(installation.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 2 {
		t.Errorf("the operator has %d pods, want 2", len(pods.Items))
	}
}

func (s *suite) life(t *testing.T) {
	namespace := s.namespace(t)
	s.create(t, namespace, testkit.Bucket("photos"))
	bucket := s.waitAllReady(t, namespace, 1)[0]
	s.expectOneEach(t, []storagev1.StorageBucket{bucket})
	if bucket.Status.Endpoint != s.provider.Endpoint() {
		t.Errorf("status.endpoint is %q, want %q", bucket.Status.Endpoint, s.provider.Endpoint())
	}

	bucket.Spec.SizeGB = 200
	if err := s.client.Update(t.Context(), &bucket); err != nil {
		t.Fatal(err)
	}
	s.waitAllReady(t, namespace, 1)
	if have, err := s.provider.Buckets(t.Context()); err != nil || len(have) != 1 || have[0].SizeGB != 200 {
		t.Errorf("the provider has %v (%v), want one of 200 GB", have, err)
	}

	access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "photos-access"}}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(access), access); err != nil {
		t.Fatal(err)
	}
	former := access.UID
	s.delete(t, namespace, access)
	testnode.Eventually(t, "the Secret is back", func(ctx context.Context) error {
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "photos-access"}, access)
		switch {
		case err != nil:
			return err
		case access.UID == former:
			return errors.New("it is still the former one")
		case string(access.Data["id"]) != bucket.Status.ID:
			return fmt.Errorf("its id is %q, want %q", access.Data["id"], bucket.Status.ID)
		}
		return nil
	})
	s.removeAll(t, namespace)
}
