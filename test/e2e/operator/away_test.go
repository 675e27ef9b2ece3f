package operator_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/e2e/installation"
	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// away has a user harm what a bucket owns while there is no operator: beyond
// what can be edited back, and out of its cache's sight. The operator comes back
// as on a cluster whose API server streams no lists.
func (s *suite) away(t *testing.T) {
	namespace := s.namespaceAt(t, s.provider.AddressEndpoint(t))
	s.create(t, namespace,
		testkit.Bucket("photos"),
	)
	s.waitAllReady(t, namespace, 1)
	s.scale(t, 0)
	testnode.Eventually(t, "no operator is left", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := s.client.List(ctx, pods, client.InNamespace(installation.Namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		return nil
	})

	photos := metav1.ObjectMeta{Namespace: namespace, Name: "photos"}
	service, slice := &corev1.Service{ObjectMeta: photos}, &discoveryv1.EndpointSlice{ObjectMeta: photos}
	for _, harm := range []struct {
		object client.Object
		patch  string
	}{
		// An address once given cannot be taken from a Service again.
		{service, `{"spec":{"type":"ExternalName","externalName":"elsewhere.example","clusterIP":null,"clusterIPs":null}}`},
		{service, `{"spec":{"type":"ClusterIP","externalName":null}}`},
		{slice, `{"metadata":{"labels":null},"endpoints":[{"addresses":["198.51.100.77"]}]}`},
	} {
		if err := s.client.Patch(t.Context(), harm.object, client.RawPatch(types.MergePatchType, []byte(harm.patch))); err != nil {
			t.Fatalf("%s: %v", harm.patch, err)
		}
	}
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		t.Fatalf("the Service has the address %q, and can be edited back", service.Spec.ClusterIP)
	}

	deployment := "deployment/" + installation.Deployment
	testnode.Kubectl(t, "--namespace="+installation.Namespace, "set", "env", deployment, "KUBE_FEATURE_WatchListClient=false")
	s.scale(t, 2)
	testnode.Eventually(t, "all is mended", func(ctx context.Context) error {
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
			return err
		}
		if service.Spec.ClusterIP != corev1.ClusterIPNone || slice.Endpoints[0].Addresses[0] == "198.51.100.77" || len(slice.Labels) == 0 {
			return fmt.Errorf("the Service is %+v, the EndpointSlice %+v", service.Spec, slice)
		}
		return nil
	})
	s.expectOneEach(t, s.waitAllReady(t, namespace, 1))
	s.removeAll(t, namespace)
	testnode.Kubectl(t, "--namespace="+installation.Namespace, "set", "env", deployment, "KUBE_FEATURE_WatchListClient-")
	installation.WaitAvailable(t, installation.Namespace, installation.Deployment)
}

func (s *suite) scale(t *testing.T, replicas int) {
	t.Helper()
	testnode.Kubectl(t, "--namespace="+installation.Namespace, "scale", "deployment", installation.Deployment, fmt.Sprintf("--replicas=%d", replicas))
}
