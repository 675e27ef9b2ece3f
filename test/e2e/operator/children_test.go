package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// children has a user harm whatever a bucket owns, in each way that the operator
// mends by another verb, and use a provider by its address.
func (s *suite) children(t *testing.T) {
	namespace := s.namespaceAt(t, s.provider.AddressEndpoint(t))
	s.create(t, namespace,
		// Names that somebody else has taken.
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken-access"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "taken"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "elsewhere.example"}},
		testkit.Bucket("photos"), testkit.Bucket("taken"),
	)
	testnode.Eventually(t, "the taken names are told", func(ctx context.Context) error {
		bucket := &storagev1.StorageBucket{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "taken"}, bucket); err != nil {
			return err
		}
		for condition, reason := range map[string]string{
			storagev1.ConditionCredentialsReady: storagev1.ReasonSecretConflict,
			storagev1.ConditionEndpointReady:    storagev1.ReasonServiceConflict,
		} {
			if c := meta.FindStatusCondition(bucket.Status.Conditions, condition); c == nil || c.Reason != reason {
				return fmt.Errorf("%s is %+v, want %s", condition, c, reason)
			}
		}
		return nil
	})
	s.delete(t, namespace, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "taken-access"}})
	s.delete(t, namespace, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "taken"}})
	s.waitAllReady(t, namespace, 2)

	secret, service, slice := &corev1.Secret{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}
	mended := func(what string, object client.Object, name string, right func() bool) {
		t.Helper()
		testnode.Eventually(t, what+" is mended", func(ctx context.Context) error {
			if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
				return err
			}
			if !right() {
				return errors.New("it is not")
			}
			return nil
		})
	}
	patch := func(object client.Object, patch string) {
		t.Helper()
		if err := s.client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}

	mended("the Secret", secret, "photos-access", func() bool { return len(secret.Data["id"]) > 0 })
	id := string(secret.Data["id"])
	patch(secret, `{"stringData":{"id":"wrong"}}`)
	mended("the edited Secret", secret, "photos-access", func() bool { return string(secret.Data["id"]) == id })
	patch(secret, `{"stringData":{"id":"wrong"},"immutable":true}`)
	mended("the Secret that cannot be edited back", secret, "photos-access", func() bool { return string(secret.Data["id"]) == id })

	mended("the Service", service, "photos", func() bool { return service.Spec.ClusterIP == corev1.ClusterIPNone })
	port := service.Spec.Ports[0].Port
	patch(service, `{"spec":{"ports":[{"name":"mine","port":1}]}}`)
	mended("the edited Service", service, "photos", func() bool { return service.Spec.Ports[0].Port == port })

	address := func() string { return strings.Join(slice.Endpoints[0].Addresses, ",") }
	mended("the EndpointSlice", slice, "photos", func() bool { return len(slice.Endpoints) == 1 })
	right := address()
	patch(slice, `{"endpoints":[{"addresses":["198.51.100.77"]}]}`)
	mended("the edited EndpointSlice", slice, "photos", func() bool { return address() == right })

	// A provider by its name needs no EndpointSlice.
	config := &storagev1.BucketProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: storagev1.DefaultBucketProviderConfigName}}
	patch(config, fmt.Sprintf(`{"spec":{"endpoint":%q}}`, s.provider.Endpoint()))
	testnode.Eventually(t, "the Service leads to the provider's name", func(ctx context.Context) error {
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "photos"}, service); err != nil {
			return err
		}
		slices := &discoveryv1.EndpointSliceList{}
		if err := s.client.List(ctx, slices, client.InNamespace(namespace)); err != nil {
			return err
		}
		if service.Spec.Type != corev1.ServiceTypeExternalName || len(slices.Items) > 0 {
			return fmt.Errorf("its type is %s, and there are %d EndpointSlices", service.Spec.Type, len(slices.Items))
		}
		return nil
	})
	s.waitAllReady(t, namespace, 2)
	s.removeAll(t, namespace)
	s.delete(t, namespace, config)
}
