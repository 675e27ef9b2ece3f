package child_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// knows is a cache of StatefulSets, ReplicaSets and Deployments of one namespace.
type knows map[string]client.Object

func (k knows) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if k == nil {
		return errors.New("the cache is not running")
	}
	found, ok := k[key.Name]
	if !ok || key.Namespace != "space" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	switch into := into.(type) {
	case *appsv1.StatefulSet:
		found.(*appsv1.StatefulSet).DeepCopyInto(into)
	case *appsv1.ReplicaSet:
		found.(*appsv1.ReplicaSet).DeepCopyInto(into)
	case *appsv1.Deployment:
		found.(*appsv1.Deployment).DeepCopyInto(into)
	}
	return nil
}

func (k knows) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nobody lists")
}

func TestAncestorLeadsToTheOwnerByWayOfWhatIsOwned(t *testing.T) {
	t.Parallel()
	const bucket, apps = "storage.avalonhosting.example/v1", "apps/v1"
	meta := func(name, uid string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "space", Name: name, UID: types.UID(uid), OwnerReferences: owner}
	}
	by := func(apiVersion, kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: new(true)}
	}
	byOwner := by(bucket, "StorageBucket", "owner", "o")
	set := func(owner ...metav1.OwnerReference) knows {
		return knows{"set": &appsv1.StatefulSet{ObjectMeta: meta("set", "s", owner...)}}
	}
	deployment := knows{
		"rs":  &appsv1.ReplicaSet{ObjectMeta: meta("rs", "r", by(apps, "Deployment", "app", "d"))},
		"app": &appsv1.Deployment{ObjectMeta: meta("app", "d", byOwner)},
	}
	viaSet := []client.Object{&appsv1.StatefulSet{}}
	viaDeployment := []client.Object{&appsv1.ReplicaSet{}, &appsv1.Deployment{}}
	noController := by(apps, "StatefulSet", "set", "s")
	noController.Controller = nil
	for name, tc := range map[string]struct {
		cached knows
		via    []client.Object
		of     []metav1.OwnerReference // the pod
		found  bool
	}{
		"directly":                             {cached: knows{}, of: []metav1.OwnerReference{byOwner}, found: true},
		"of another version":                   {cached: knows{}, of: []metav1.OwnerReference{by("storage.avalonhosting.example/v9", "StorageBucket", "owner", "o")}, found: true},
		"by a StatefulSet":                     {cached: set(byOwner), via: viaSet, of: []metav1.OwnerReference{by(apps, "StatefulSet", "set", "s")}, found: true},
		"by a ReplicaSet and a Deployment":     {cached: deployment, via: viaDeployment, of: []metav1.OwnerReference{by(apps, "ReplicaSet", "rs", "r")}, found: true},
		"not where nobody owns the pod":        {cached: set(byOwner), via: viaSet},
		"not where its owner is no controller": {cached: set(byOwner), via: viaSet, of: []metav1.OwnerReference{noController}},
		"not where nobody owns the set":        {cached: set(), via: viaSet, of: []metav1.OwnerReference{by(apps, "StatefulSet", "set", "s")}},
		"not where the set is another by now":  {cached: set(byOwner), via: viaSet, of: []metav1.OwnerReference{by(apps, "StatefulSet", "set", "s-before")}},
		"not where the set is gone":            {cached: knows{}, via: viaSet, of: []metav1.OwnerReference{by(apps, "StatefulSet", "set", "s")}},
		"not where the cache fails":            {via: viaSet, of: []metav1.OwnerReference{by(apps, "StatefulSet", "set", "s")}},
		"not where the pod is of another kind": {cached: set(byOwner), via: viaSet, of: []metav1.OwnerReference{by(apps, "DaemonSet", "set", "s")}},
		"not where it is of another group":     {cached: set(byOwner), via: viaSet, of: []metav1.OwnerReference{by("example/v1", "StatefulSet", "set", "s")}},
		"not where the version is nonsense":    {cached: set(byOwner), via: viaSet, of: []metav1.OwnerReference{by("a/b/c", "StatefulSet", "set", "s")}},
		"not where the set is somebody else's": {
			cached: set(by("example/v1", "StorageBucket", "owner", "o")), via: viaSet, of: []metav1.OwnerReference{by(apps, "StatefulSet", "set", "s")},
		},
		"not past what is in between": {cached: deployment, via: viaDeployment, of: []metav1.OwnerReference{by(apps, "Deployment", "app", "d")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ancestor := child.Ancestor(tc.cached, newScheme(t), &storagev1.StorageBucket{}, tc.via...)
			var want []reconcile.Request
			if tc.found {
				want = []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "space", Name: "owner"}}}
			}
			got := ancestor(t.Context(), &corev1.Pod{ObjectMeta: meta("pod", "p", tc.of...)})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the requests differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHarmedAndMovedLetThroughWhatIsNews(t *testing.T) {
	t.Parallel()
	version := func(v string) client.Object { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v}} }
	for name, tc := range map[string]struct {
		ask           func(predicate.Predicate) bool
		harmed, moved bool
	}{
		"made":    {ask: func(p predicate.Predicate) bool { return p.Create(event.CreateEvent{Object: version("1")}) }, moved: true},
		"deleted": {ask: func(p predicate.Predicate) bool { return p.Delete(event.DeleteEvent{Object: version("1")}) }, harmed: true, moved: true},
		"changed": {ask: func(p predicate.Predicate) bool {
			return p.Update(event.UpdateEvent{ObjectOld: version("1"), ObjectNew: version("2")})
		}, harmed: true, moved: true},
		"resynced": {ask: func(p predicate.Predicate) bool {
			return p.Update(event.UpdateEvent{ObjectOld: version("1"), ObjectNew: version("1")})
		}},
		"nudged": {ask: func(p predicate.Predicate) bool { return p.Generic(event.GenericEvent{Object: version("1")}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.ask(child.Harmed()); got != tc.harmed {
				t.Errorf("Harmed says %t", got)
			}
			if got := tc.ask(child.Moved()); got != tc.moved {
				t.Errorf("Moved says %t", got)
			}
		})
	}
}
