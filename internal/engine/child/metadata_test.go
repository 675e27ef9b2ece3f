package child_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// inheriting keeps a Secret that carries what *spec says.
func inheriting(t *testing.T, spec **apimeta.InheritedMetadata) *arena {
	return secretArena(t, idAndKey, func(c *child.Child[*corev1.Secret]) { c.Metadata = child.Inherited(*spec) })
}

func TestInheritedMetadataComesChangesAndGoes(t *testing.T) {
	t.Parallel()
	spec := &apimeta.InheritedMetadata{
		Labels:      map[string]apimeta.LabelValue{"team": "blue", "tier": "gold"},
		Annotations: map[string]apimeta.AnnotationValue{"example.com/cost": "42"},
	}
	a := inheriting(t, &spec)
	wantLabels := func(want map[string]string) {
		t.Helper()
		secret := access()
		a.read(secret)
		if diff := cmp.Diff(want, secret.Labels); diff != "" {
			t.Errorf("the labels differ (-want +got):\n%s", diff)
		}
	}
	wantAnnotation := func(key, want string) {
		t.Helper()
		secret := access()
		a.read(secret)
		if got := secret.Annotations[key]; got != want {
			t.Errorf("the annotation %s is %q, want %q", key, got, want)
		}
	}
	a.passCosts(access(), postSecret)
	wantLabels(map[string]string{engine.Label: engine.LabelValue, "team": "blue", "tier": "gold"})
	wantAnnotation("example.com/cost", "42")
	a.passCosts(access())

	change(a, access(), func(s *corev1.Secret) { s.Labels["theirs"], s.Annotations["theirs"] = "stays", "stays" })
	a.passCosts(access())

	spec = &apimeta.InheritedMetadata{
		Labels:      map[string]apimeta.LabelValue{"team": "red"},
		Annotations: map[string]apimeta.AnnotationValue{"example.com/cost": "43"},
	}
	a.passCosts(access(), getSecret, putSecret)
	wantLabels(map[string]string{engine.Label: engine.LabelValue, "team": "red", "theirs": "stays"})
	wantAnnotation("example.com/cost", "43")
	a.passCosts(access())

	change(a, access(), func(s *corev1.Secret) { s.Labels["team"] = "of-a-stranger" })
	a.passCosts(access(), getSecret, putSecret)
	wantLabels(map[string]string{engine.Label: engine.LabelValue, "team": "red", "theirs": "stays"})

	spec = nil
	a.passCosts(access(), getSecret, putSecret)
	wantLabels(map[string]string{engine.Label: engine.LabelValue, "theirs": "stays"})
	wantAnnotation("example.com/cost", "")
	wantAnnotation("theirs", "stays")
	wantAnnotation(child.InheritedAnnotation, "")
	a.restart()
	a.passCosts(access())
}

func TestTheOperatorsOwnLabelWinsOverAnInheritedOne(t *testing.T) {
	t.Parallel()
	spec := &apimeta.InheritedMetadata{Labels: map[string]apimeta.LabelValue{engine.Label: "helm", "team": "blue"}}
	a := inheriting(t, &spec)
	a.passes()
	secret := access()
	a.read(secret)
	if secret.Labels[engine.Label] != engine.LabelValue || secret.Labels["team"] != "blue" {
		t.Errorf("the labels are %v", secret.Labels)
	}
	a.passCosts(access())
	spec = nil // its record lists the operator's own label, too
	a.passCosts(access(), getSecret, putSecret)
	a.read(secret)
	if secret.Labels[engine.Label] != engine.LabelValue {
		t.Errorf("the labels are %v", secret.Labels)
	}
}

func TestAsMuchAsASpecTakesIsInheritedWithoutARequestAPass(t *testing.T) {
	t.Parallel()
	spec := &apimeta.InheritedMetadata{
		Labels: map[string]apimeta.LabelValue{}, Annotations: map[string]apimeta.AnnotationValue{},
	}
	for i := range 8 {
		long := fmt.Sprintf("%s.example/%063d", longDomain, i)
		spec.Labels[long] = "v"
		spec.Annotations[long] = apimeta.AnnotationValue(fmt.Sprintf("%0256d", i))
	}
	a := inheriting(t, &spec)
	a.passCosts(access(), postSecret)
	a.passCosts(access())
	spec = nil
	a.passCosts(access(), getSecret, putSecret)
	secret := access()
	a.read(secret)
	if len(secret.Labels) != 1 || len(secret.Annotations) != 0 {
		t.Errorf("something stayed: %v, %v", secret.Labels, secret.Annotations)
	}
}

const longDomain = "a123456789.b123456789.c123456789.d123456789.e123456789.f123456789.g123456789.h123456789.i123456789.j123456789.k123456789"

func TestAForgedRecordTakesNothingThatIsWanted(t *testing.T) {
	t.Parallel()
	spec := &apimeta.InheritedMetadata{Labels: map[string]apimeta.LabelValue{"team": "blue"}}
	a := inheriting(t, &spec)
	a.passes()
	change(a, access(), func(s *corev1.Secret) {
		s.Annotations[child.InheritedAnnotation] = "label:" + engine.Label + " label:team annotation:x label: nonsense"
	})
	a.passCosts(access(), getSecret, putSecret)
	secret := access()
	a.read(secret)
	if diff := cmp.Diff(map[string]string{engine.Label: engine.LabelValue, "team": "blue"}, secret.Labels); diff != "" {
		t.Errorf("the labels differ:\n%s", diff)
	}
	if got := secret.Annotations[child.InheritedAnnotation]; got != "label:team" {
		t.Errorf("the record is %q", got)
	}
	a.passCosts(access())
}

// wantLabel has the API server refuse Secrets of the arena's namespace without
// the label team, until undo is called.
func (a *arena) wantLabel(operations ...admissionregistrationv1.OperationType) (undo func()) {
	a.t.Helper()
	name := a.namespace + "-wants-team"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: operations,
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				},
			}}},
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
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": a.namespace},
			}},
		},
	}
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: a.namespace}}
	a.create(probe)
	refused := func(want bool) func() string {
		return func() string {
			create := probe.DeepCopy()
			create.Name, create.ResourceVersion, create.UID = "new", "", ""
			var err error
			if operations[0] == admissionregistrationv1.Create {
				err = a.admin.Create(a.t.Context(), create, client.DryRunAll)
			} else {
				err = a.admin.Update(a.t.Context(), probe.DeepCopy(), client.DryRunAll)
			}
			if apierrors.IsInvalid(err) != want {
				return fmt.Sprintf("the policy is not so yet: %v", err)
			}
			return ""
		}
	}
	drop := func() {
		ctx := context.WithoutCancel(a.t.Context())
		_ = a.admin.Delete(ctx, binding)
		_ = a.admin.Delete(ctx, policy)
	}
	a.t.Cleanup(drop)
	for _, object := range []client.Object{policy, binding} {
		if err := a.admin.Create(a.t.Context(), object); err != nil {
			a.t.Fatal(err)
		}
	}
	a.eventually(refused(true))
	return func() {
		a.t.Helper()
		drop()
		a.eventually(refused(false))
	}
}

func TestAPolicysRefusalIsToldAndLookedAtAgain(t *testing.T) {
	t.Parallel()
	t.Run("until the policy is gone", func(t *testing.T) {
		t.Parallel()
		a := secretArena(t, idAndKey)
		undo := a.wantLabel(admissionregistrationv1.Create, admissionregistrationv1.Update)
		a.wantBlockedBy(access(), apimeta.ReasonChildRefused, postSecret)
		undo()
		a.passCosts(access(), postSecret)
		a.wantCondition(metav1.ConditionTrue, "Done")
		a.wantStalled(false)
	})
	t.Run("until the label is in the spec", func(t *testing.T) {
		t.Parallel()
		var spec *apimeta.InheritedMetadata
		a := inheriting(t, &spec)
		a.wantLabel(admissionregistrationv1.Create, admissionregistrationv1.Update)
		a.wantBlockedBy(access(), apimeta.ReasonChildRefused, postSecret)
		spec = &apimeta.InheritedMetadata{Labels: map[string]apimeta.LabelValue{"team": "blue"}}
		a.passCosts(access(), postSecret)
		a.wantCondition(metav1.ConditionTrue, "Done")
	})
}

func TestAPolicyThatRefusesACorrectionDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, operations := range map[string][]admissionregistrationv1.OperationType{
		"of updates alone":           {admissionregistrationv1.Update},
		"of updates and what is new": {admissionregistrationv1.Create, admissionregistrationv1.Update},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := secretArena(t, idAndKey, remade)
			a.passes()
			change(a, access(), func(s *corev1.Secret) { s.Data["key"] = []byte("wrong") })
			before := access()
			a.read(before)
			undo := a.wantLabel(operations...)
			a.wantBlockedBy(access(), apimeta.ReasonChildRefused, getSecret, putSecret)
			undo()
			a.passCosts(access(), getSecret, putSecret)
			after := access()
			a.read(after)
			if after.UID != before.UID || string(after.Data["key"]) != "k-1" {
				t.Errorf("the child is %s with %q", after.UID, after.Data)
			}
		})
	}
}
