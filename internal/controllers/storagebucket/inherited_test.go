package storagebucket_test

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// wantTeam has the API server refuse Secrets, Services and EndpointSlices of the
// world's namespace that have no label team, until undo is called.
func wantTeam(t *testing.T, w *testkit.World) (undo func()) {
	t.Helper()
	name := w.Namespace + "-wants-team"
	resources := func(group string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
		}}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				resources("", "secrets", "services"), resources("discovery.k8s.io", "endpointslices"),
			}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", Message: "a label team is wanted",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.Namespace},
			}},
		},
	}
	drop := func() {
		ctx := context.WithoutCancel(t.Context())
		_ = w.Client.Delete(ctx, binding)
		_ = w.Client.Delete(ctx, policy)
	}
	t.Cleanup(drop)
	for _, object := range []client.Object{policy, binding} {
		if err := w.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	inForce := func(want bool) {
		t.Helper()
		testkit.Eventually(t, func(ctx context.Context) string {
			probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}}
			if err := w.Client.Create(ctx, probe, client.DryRunAll); apierrors.IsInvalid(err) != want {
				return fmt.Sprintf("the policy is not so yet: %v", err)
			}
			return ""
		})
	}
	inForce(true)
	return func() {
		t.Helper()
		drop()
		inForce(false)
	}
}

func TestC1APolicyThatWantsALabelIsServedByTheSpec(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	undo := wantTeam(t, w)
	w.Start(t, testkit.Settings{WrapProvider: atAddress(w)})
	w.Create(t, testkit.Config("default", "http://192.0.2.7:8080", ""), testkit.Bucket("photos"))
	bucket := w.WaitCondition(t, "photos", storagev1.ConditionCredentialsReady, metav1.ConditionFalse, apimeta.ReasonChildRefused)
	wantText(t, "the message", messageOf(bucket.Status.Conditions, storagev1.ConditionCredentialsReady), "photos-access", "a label team is wanted")
	w.WaitCondition(t, "photos", storagev1.ConditionEndpointReady, metav1.ConditionFalse, apimeta.ReasonChildRefused)
	w.WaitCondition(t, "photos", engine.ConditionStalled, metav1.ConditionTrue, "")

	inherit := func(spec *apimeta.InheritedMetadata) {
		t.Helper()
		testkit.Modify(t, w, "photos", &storagev1.StorageBucket{}, func(b *storagev1.StorageBucket) { b.Spec.InheritedMetadata = spec })
	}
	children := func(labels, annotations map[string]string) {
		t.Helper()
		for _, c := range childrenOf("photos") {
			testkit.WaitFor(t, w, c.GetName(), c, func(o client.Object) string {
				for key, want := range labels {
					if o.GetLabels()[key] != want {
						return fmt.Sprintf("%T has the labels %v, want %v", o, o.GetLabels(), labels)
					}
				}
				for key, want := range annotations {
					if o.GetAnnotations()[key] != want {
						return fmt.Sprintf("%T has the annotations %v, want %v", o, o.GetAnnotations(), annotations)
					}
				}
				return ""
			})
		}
	}
	inherit(&apimeta.InheritedMetadata{
		Labels:      map[string]apimeta.LabelValue{"team": "blue"},
		Annotations: map[string]apimeta.AnnotationValue{"example.com/cost": "42"},
	})
	w.WaitReady(t, "photos")
	children(map[string]string{"team": "blue", engine.Label: engine.LabelValue}, map[string]string{"example.com/cost": "42"})

	inherit(&apimeta.InheritedMetadata{Labels: map[string]apimeta.LabelValue{"team": "red"}})
	children(map[string]string{"team": "red"}, map[string]string{"example.com/cost": ""})

	undo()
	inherit(nil)
	children(map[string]string{"team": "", engine.Label: engine.LabelValue}, nil)
	w.WaitReady(t, "photos")
}

func TestC1ABucketLooksAgainByItselfWhetherThePolicyIsGone(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	undo := wantTeam(t, w)
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitCondition(t, "photos", storagev1.ConditionCredentialsReady, metav1.ConditionFalse, apimeta.ReasonChildRefused)
	undo()
	w.WaitReady(t, "photos") // no event tells of it, and no resync comes
}
