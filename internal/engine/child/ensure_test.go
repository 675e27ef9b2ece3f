package child_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// secretOf is a Secret as a kind would want it.
func secretOf(pass *engine.Pass, data map[string][]byte) child.Child[*corev1.Secret] {
	return child.Child[*corev1.Secret]{
		Want: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pass.Object().GetNamespace(), Name: "access"}, Data: data},
		Same: func(live *corev1.Secret) bool { return child.HoldsData(live.Data, data) },
		Correct: func(live *corev1.Secret) {
			if live.Data == nil {
				live.Data = map[string][]byte{}
			}
			maps.Copy(live.Data, data)
		},
		Identifies: func(live *corev1.Secret) bool {
			return child.HoldsData(live.Data, map[string][]byte{"id": data["id"]})
		},
		Conflict: conflict,
	}
}

// secretArena keeps a Secret with the data, as change would have it.
func secretArena(t *testing.T, data map[string][]byte, change ...func(*child.Child[*corev1.Secret])) *arena {
	return newArena(t, func(ctx context.Context, pass *engine.Pass) error {
		wanted := secretOf(pass, data)
		for _, c := range change {
			c(&wanted)
		}
		return child.Ensure(ctx, pass, wanted)
	})
}

func remade(c *child.Child[*corev1.Secret]) { c.Remake = true }

func access() *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "access"}} }

var idAndKey = map[string][]byte{"id": []byte("b-1"), "key": []byte("k-1")}

const (
	getSecret    = "GET secrets/access"
	putSecret    = "PUT secrets/access"
	postSecret   = "POST secrets"
	deleteSecret = "DELETE secrets/access"
)

func TestAMissingChildIsMadeOnceAndCostsNothingAfterwards(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	a.passCosts(access(), postSecret)
	secret := access()
	a.read(secret)
	if !metav1.IsControlledBy(secret, a.owner) || secret.Labels[engine.Label] != engine.LabelValue {
		t.Errorf("the child is not marked as the owner's: %+v", secret.ObjectMeta)
	}
	if diff := cmp.Diff(idAndKey, secret.Data); diff != "" {
		t.Errorf("the data differs:\n%s", diff)
	}
	a.passCosts(access())
	a.restart()
	a.passCosts(access())
	a.wantCondition(metav1.ConditionTrue, "Done")
}

func TestACorrectionIsOneReadAndOneUpdateAndKeepsWhatIsOthers(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	a.passes()
	another := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "another-owner"}}
	a.create(another)
	theirs := map[string][]byte{}
	for i := range 200 { // more than the cache holds
		theirs[fmt.Sprintf("a-key-of-others-%d", i)] = []byte(strings.Repeat("x", 1000))
	}
	finalizers := []string{"others.example/1", "others.example/2", "others.example/3", "others.example/4", "others.example/5"}
	change(a, access(), func(s *corev1.Secret) {
		maps.Copy(s.Data, theirs)
		s.Data["key"] = []byte("wrong")
		s.Finalizers = finalizers
		s.Annotations = map[string]string{"others.example/note": strings.Repeat("n", 10_000)}
		s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: another.Name, UID: another.UID})
	})
	t.Cleanup(func() {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		_ = a.admin.Patch(context.WithoutCancel(t.Context()), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "access"}}, patch)
	})
	a.passCosts(access(), getSecret, putSecret)
	secret := access()
	a.read(secret)
	maps.Copy(theirs, idAndKey)
	if diff := cmp.Diff(theirs, secret.Data); diff != "" {
		t.Errorf("the data differs:\n%s", diff)
	}
	if diff := cmp.Diff(finalizers, secret.Finalizers); diff != "" {
		t.Errorf("the finalizers differ:\n%s", diff)
	}
	if len(secret.Annotations["others.example/note"]) != 10_000 || len(secret.OwnerReferences) != 2 {
		t.Errorf("what others have put there is gone: %d owners", len(secret.OwnerReferences))
	}
	// Ours sort after what others have filled the cache's form with: that costs a read, and no write.
	a.passCosts(access(), getSecret)
}

func TestAStaleCacheCostsAReadAndNoWrite(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	a.passes()
	stale := access()
	a.read(stale)
	stale.Data["key"] = []byte("as it was before")
	a.cached.frozen = stale
	a.passCosts(access(), getSecret)
	a.wantCondition(metav1.ConditionTrue, "Done")
}

func TestAChildThatLostItsLabelComesBackIntoTheCache(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	a.passes()
	change(a, access(), func(s *corev1.Secret) { s.Labels = nil })
	a.passCosts(access(), postSecret, getSecret, putSecret)
	a.passCosts(access())
}

func TestAnUpdateThatIsRefusedDeletesNothing(t *testing.T) {
	t.Parallel()
	service := "first"
	a := newArena(t, func(ctx context.Context, pass *engine.Pass) error {
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: pass.Object().GetNamespace(), Name: "members"},
			Spec: appsv1.StatefulSetSpec{
				ServiceName: service, Replicas: new(int32(0)),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "members"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "members"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "example/server"}}},
				},
			},
		}
		return child.Ensure(ctx, pass, child.Child[*appsv1.StatefulSet]{
			Want: set, Conflict: conflict,
			Same:    func(live *appsv1.StatefulSet) bool { return live.Spec.ServiceName == service },
			Correct: func(live *appsv1.StatefulSet) { live.Spec.ServiceName = service },
		})
	})
	a.passes()
	before := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "members"}}
	a.read(before)
	service = "second"
	next := a.passCosts(before, "GET statefulsets/members", "PUT statefulsets/members")
	a.wantBlocked(apimeta.ReasonChildRefused, next)
	after := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "members"}}
	a.read(after)
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("version %s/%s became %s/%s", before.UID, before.ResourceVersion, after.UID, after.ResourceVersion)
	}
}

func TestAChildThatMayBeRemadeIsDeletedByUIDAndMadeAnew(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey, remade)
	a.passes()
	change(a, access(), func(s *corev1.Secret) { s.Data["key"], s.Immutable = []byte("wrong"), new(true) })
	before := access()
	a.read(before)
	a.passCosts(access(), getSecret, putSecret, "dry run of "+postSecret, deleteSecret)
	if body := a.requests.bodyOf(deleteSecret); !strings.Contains(body, string(before.UID)) {
		t.Errorf("the deletion is of any object of the name: %s", body)
	}
	a.wantCondition(metav1.ConditionFalse, apimeta.ReasonChildTerminating)
	a.passCosts(access(), postSecret)
	after := access()
	a.read(after)
	if after.UID == before.UID || string(after.Data["key"]) != "k-1" {
		t.Errorf("the child is %s with %q", after.UID, after.Data)
	}
	a.wantCondition(metav1.ConditionTrue, "Done")
}

func TestAChildThatMayNotBeRemadeStaysImmutable(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	a.passes()
	change(a, access(), func(s *corev1.Secret) { s.Data["key"], s.Immutable = []byte("wrong"), new(true) })
	a.wantBlockedBy(access(), apimeta.ReasonChildRefused, getSecret, putSecret)
}

func (a *arena) wantBlockedBy(object client.Object, reason string, requests ...string) {
	a.t.Helper()
	a.wantBlocked(reason, a.passCosts(object, requests...))
}

func TestAChildWhoseSuccessorWouldBeRefusedIsNotDeleted(t *testing.T) {
	t.Parallel()
	host := "good.example"
	a := newArena(t, func(ctx context.Context, pass *engine.Pass) error {
		return child.Ensure(ctx, pass, child.Child[*corev1.Service]{
			Want: &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: pass.Object().GetNamespace(), Name: "front"},
				Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
			},
			Same:    func(live *corev1.Service) bool { return live.Spec.ExternalName == host },
			Correct: func(live *corev1.Service) { live.Spec.ExternalName = host },
			Remake:  true, Conflict: conflict,
		})
	})
	a.passes()
	before := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front"}}
	a.read(before)
	host = "not_a_host"
	a.wantBlockedBy(before, apimeta.ReasonChildRefused, "GET services/front", "PUT services/front", "dry run of POST services")
	after := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "front"}}
	a.read(after)
	if after.UID != before.UID || after.Spec.ExternalName != "good.example" {
		t.Errorf("the child became %s %q", after.UID, after.Spec.ExternalName)
	}
}

func TestAnOrphanThatIsRecognizedIsAdopted(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	orphan := access()
	orphan.Labels = map[string]string{engine.Label: engine.LabelValue, "others": "too"}
	orphan.Data = map[string][]byte{"id": []byte("b-1"), "key": []byte("of a former life"), "theirs": []byte("stays")}
	a.create(orphan)
	a.passCosts(access(), getSecret, putSecret)
	adopted := access()
	a.read(adopted)
	want := map[string][]byte{"id": []byte("b-1"), "key": []byte("k-1"), "theirs": []byte("stays")}
	if diff := cmp.Diff(want, adopted.Data); diff != "" {
		t.Errorf("the data differs:\n%s", diff)
	}
	if adopted.UID != orphan.UID || !metav1.IsControlledBy(adopted, a.owner) || adopted.Labels["others"] != "too" {
		t.Errorf("the orphan became %+v", adopted.ObjectMeta)
	}
	a.wantCondition(metav1.ConditionTrue, "Done")
	a.passCosts(access())
}

func TestWhatIsNotOursIsNeverTouched(t *testing.T) {
	t.Parallel()
	ours := map[string]string{engine.Label: engine.LabelValue}
	stranger := func(*arena) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "example/v1", Kind: "Vault", Name: "subject", UID: "1-2-3", Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		labels   map[string]string
		data     map[string][]byte
		owners   func(*arena) []metav1.OwnerReference
		change   func(*child.Child[*corev1.Secret])
		requests []string
	}{
		"an orphan without our label": {data: idAndKey, requests: []string{postSecret, getSecret}},
		"an orphan with another's label": {
			labels: map[string]string{engine.Label: "helm"}, data: idAndKey, requests: []string{postSecret, getSecret},
		},
		"an orphan that is not recognized": {
			labels: ours, data: map[string][]byte{"id": []byte("b-2"), "key": []byte("k-1")}, requests: []string{getSecret},
		},
		"an orphan of a kind that recognizes none": {
			labels: ours, data: idAndKey, requests: []string{getSecret},
			change: func(c *child.Child[*corev1.Secret]) { c.Identifies = nil },
		},
		"one that is controlled by somebody else": {labels: ours, data: idAndKey, owners: stranger, requests: []string{getSecret}},
		"one that may be remade":                  {data: nil, requests: []string{postSecret, getSecret}, change: remade},
		"one of another of our objects": {
			labels: ours, data: idAndKey, requests: []string{getSecret},
			owners: func(a *arena) []metav1.OwnerReference {
				another := &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{Name: "another"}, Spec: a.owner.Spec}
				a.create(another)
				return []metav1.OwnerReference{*metav1.NewControllerRef(another, storagev1.GroupVersion.WithKind("StorageBucket"))}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := secretArena(t, idAndKey)
			if tc.change != nil {
				a = secretArena(t, idAndKey, tc.change)
			}
			theirs := access()
			theirs.Labels, theirs.Data = tc.labels, tc.data
			if tc.owners != nil {
				theirs.OwnerReferences = tc.owners(a)
			}
			a.create(theirs)
			a.wantBlockedBy(access(), conflict, tc.requests...)
			after := access()
			a.read(after)
			if after.ResourceVersion != theirs.ResourceVersion {
				t.Errorf("it was touched: %+v", after)
			}
			a.delete(theirs)
			a.passCosts(access(), postSecret)
			a.wantCondition(metav1.ConditionTrue, "Done")
			a.wantStalled(false)
		})
	}
}

func TestAnObjectInTheWayThatIsGoneBlocksNobody(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	theirs := access()
	theirs.Labels = map[string]string{engine.Label: engine.LabelValue}
	a.create(theirs)
	a.settle(access())
	a.cached.frozen = theirs.DeepCopy() // another informer was faster
	a.delete(theirs)
	requests, next := a.pass()
	if diff := cmp.Diff([]string{getSecret}, requests); diff != "" {
		t.Errorf("the requests differ:\n%s", diff)
	}
	if next > time.Second || a.condition(condition) != nil && a.condition(condition).Status == metav1.ConditionFalse {
		t.Errorf("the next pass is in %s, the condition is %+v", next, a.condition(condition))
	}
	a.cached.frozen = nil
	a.passCosts(access(), postSecret)
}

func TestAChildThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey, remade)
	a.passes()
	change(a, access(), func(s *corev1.Secret) { s.Finalizers = []string{"others.example/hold"} })
	going := access()
	a.delete(going)
	a.passCosts(access(), getSecret)
	a.wantCondition(metav1.ConditionFalse, apimeta.ReasonChildTerminating)
	a.wantStalled(false)
	change(a, access(), func(s *corev1.Secret) { s.Finalizers = nil })
	a.passCosts(access(), postSecret)
	a.wantCondition(metav1.ConditionTrue, "Done")
}

func TestAChildOfAPredecessorIsWaitedFor(t *testing.T) {
	t.Parallel()
	a := secretArena(t, idAndKey)
	left := access()
	left.ObjectMeta = a.ownedBy("access")
	left.OwnerReferences[0].UID = "of-the-predecessor"
	left.Finalizers = []string{"others.example/hold"} // else the garbage collector is too fast
	a.create(left)
	a.passCosts(access(), getSecret)
	a.wantCondition(metav1.ConditionFalse, apimeta.ReasonPredecessorRemains)
	a.wantStalled(false)
	change(a, access(), func(s *corev1.Secret) { s.Finalizers = nil })
	a.eventually(func() string {
		if err := a.admin.Get(t.Context(), client.ObjectKeyFromObject(left), access()); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("it is still there: %v", err)
		}
		return ""
	})
	a.passCosts(access(), postSecret)
}

func TestRemoveDeletesWhatIsOursByUIDAndNothingElse(t *testing.T) {
	t.Parallel()
	a := newArena(t, func(ctx context.Context, pass *engine.Pass) error {
		gone := access()
		gone.Namespace = pass.Object().GetNamespace()
		return child.Remove(ctx, pass, gone)
	})
	a.passCosts(access()) // there is none
	theirs := access()
	theirs.Labels = map[string]string{engine.Label: engine.LabelValue}
	a.create(theirs)
	a.passCosts(access())
	a.delete(theirs)

	ours := access()
	ours.ObjectMeta = a.ownedBy("access")
	a.create(ours)
	a.settle(access())
	stale := ours.DeepCopy()
	a.passCosts(access(), deleteSecret)

	successor := access()
	a.create(successor)
	a.cached.frozen = stale
	if requests, _ := a.pass(); len(requests) != 1 {
		t.Errorf("the requests are %q", requests)
	}
	a.read(access()) // the successor is still there
}
