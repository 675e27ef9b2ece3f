package child_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
)

func TestWhatOthersSetIsNeitherFoughtNorWritten(t *testing.T) {
	t.Parallel()
	i := &intended{deployment: simple(server())}
	a := newArena(t, i.deploys)
	a.passCosts(app(), patchDeployment)
	change(a, app(), func(d *appsv1.Deployment) {
		d.Spec.Replicas = new(int32(7)) // as an autoscaler
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "example/sidecar"})
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
		d.Annotations["theirs"] = "stays"
		d.Labels["theirs"] = "stays"
		d.Finalizers = append(d.Finalizers, "others.example/hold")
	})
	a.passCosts(app())
	// Nor is it, when there is something of ours to write.
	i.deployment = simple(server().WithImage("example/server:2"))
	a.passCosts(app(), getDeployment, patchDeployment)
	d := app()
	a.read(d)
	containers := d.Spec.Template.Spec.Containers
	if *d.Spec.Replicas != 7 || len(containers) != 2 || containers[0].Image != "example/server:2" || containers[1].Name != "sidecar" ||
		len(d.Spec.Template.Annotations) != 1 || d.Annotations["theirs"] != "stays" || d.Labels["theirs"] != "stays" || len(d.Finalizers) != 1 {
		t.Errorf("what others set is gone: %+v, %+v", d.ObjectMeta, d.Spec)
	}
	a.passCosts(app())
	change(a, app(), func(d *appsv1.Deployment) { d.Finalizers = nil })
}

func TestASecondManagersFieldsComeAndGoAlone(t *testing.T) {
	t.Parallel()
	i := &intended{deployment: simple(server()), replicas: replicas(3)}
	a := newArena(t, i.deploys)
	a.passCosts(app(), patchDeployment, patchDeployment)
	wantReplicas := func(want int32) {
		t.Helper()
		d := app()
		a.read(d)
		if *d.Spec.Replicas != want {
			t.Errorf("there are %d replicas, want %d", *d.Spec.Replicas, want)
		}
	}
	wantReplicas(3)
	a.passCosts(app())
	a.restart()
	a.passCosts(app())

	// Held: somebody's change is put back, by the second manager alone.
	change(a, app(), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	a.passCosts(app(), getDeployment, patchDeployment)
	if body := a.requests.bodyOf(patchDeployment); strings.Contains(body, "template") {
		t.Errorf("the first intent was applied again: %s", body)
	}
	wantReplicas(3)

	// Given up: nothing is written, the value stays, and an autoscaler's is not fought.
	i.replicas = nil
	a.passCosts(app())
	wantReplicas(3)
	change(a, app(), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(5)) })
	a.passCosts(app())
	wantReplicas(5)

	// Taken again, and taken back for good: the manager owns nothing then.
	i.replicas = replicas(2)
	a.passCosts(app(), getDeployment, patchDeployment)
	wantReplicas(2)
	a.passCosts(app())
	i.replicas = appsv1ac.Deployment("app", "")
	a.passCosts(app(), getDeployment, patchDeployment)
	a.passCosts(app())
	d := app()
	a.read(d)
	for _, entry := range d.ManagedFields {
		if entry.Manager == replicasManager {
			t.Errorf("the manager still owns %s", entry.FieldsV1)
		}
	}
	if d.Spec.Template.Spec.Containers[0].Image != "example/server:1" {
		t.Errorf("the first manager's fields are gone: %+v", d.Spec)
	}
}

// foreign is a Deployment of somebody else, equal to simple in all that that sets
// unless change says otherwise.
func (a *arena) foreign(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := app()
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}
	d.Spec.Template.Labels = map[string]string{"app": "app"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "server", Image: "example/server:1"}}
	for _, c := range change {
		c(d)
	}
	a.create(d)
	return d
}

func TestADeploymentOfSomebodyElseIsNeverTouched(t *testing.T) {
	t.Parallel()
	ours := func(d *appsv1.Deployment) { d.Labels = map[string]string{engine.Label: engine.LabelValue} }
	for name, tc := range map[string]struct {
		change   []func(*appsv1.Deployment)
		stale    bool // the cache does not know of it yet
		requests []string
	}{
		"known":                         {requests: []string{getDeployment}},
		"with our label":                {change: []func(*appsv1.Deployment){ours}, requests: []string{getDeployment}},
		"made since the cache was read": {stale: true, requests: []string{patchDeployment, getDeployment}},
		"made since the cache was read, and another": {
			change: []func(*appsv1.Deployment){func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "theirs" }},
			stale:  true, requests: []string{patchDeployment, getDeployment},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &intended{deployment: simple(server())}
			a := newArena(t, i.deploys)
			theirs := a.foreign(tc.change...)
			a.settle(app())
			if tc.stale {
				a.cached.frozen, a.cached.absent = app(), true
			}
			requests, next := a.pass()
			if diff := cmp.Diff(tc.requests, requests); diff != "" {
				t.Errorf("the requests differ:\n%s", diff)
			}
			a.wantBlocked(conflict, next)
			after := app()
			a.read(after)
			if after.Generation != theirs.Generation || len(after.OwnerReferences) != 0 ||
				cmp.Diff(theirs.Labels, after.Labels) != "" || cmp.Diff(managersOf(theirs), managersOf(after)) != "" {
				t.Errorf("it was touched: %+v", after)
			}
		})
	}
}

// managersOf are the field managers of an object, but for the control plane's own.
func managersOf(object client.Object) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "" && entry.Manager != "kube-controller-manager" {
			managers = append(managers, fmt.Sprint(entry.Manager, entry.Operation, entry.FieldsV1))
		}
	}
	return managers
}

func TestAnOrphanedDeploymentIsAdopted(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]bool{"known": false, "made since the cache was read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &intended{deployment: simple(server()), identifies: func(d *appsv1.Deployment) bool { return d.Spec.Template.Labels["app"] == "app" }}
			a := newArena(t, i.deploys)
			orphan := a.foreign(func(d *appsv1.Deployment) {
				d.Labels = map[string]string{engine.Label: engine.LabelValue}
				d.Spec.Template.Spec.Containers[0].Image = "of/a/former:life"
				d.Spec.Replicas = new(int32(4))
			})
			a.settle(app())
			requests := []string{getDeployment, patchDeployment}
			if stale {
				a.cached.frozen, a.cached.absent = app(), true
				requests = []string{patchDeployment, getDeployment, patchDeployment}
			}
			a.passCosts(app(), requests...)
			d := app()
			a.read(d)
			if d.UID != orphan.UID || !metav1.IsControlledBy(d, a.owner) || d.Spec.Template.Spec.Containers[0].Image != "example/server:1" || *d.Spec.Replicas != 4 {
				t.Errorf("the orphan became %+v %+v", d.ObjectMeta, d.Spec)
			}
			a.wantCondition(metav1.ConditionTrue, "Done")
			a.cached.frozen = nil
			a.passCosts(app())
		})
	}
}

func TestADeploymentThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	t.Parallel()
	i := &intended{deployment: simple(server())}
	a := newArena(t, i.deploys)
	a.passCosts(app(), patchDeployment)
	change(a, app(), func(d *appsv1.Deployment) { d.Finalizers = []string{"others.example/hold"} })
	a.delete(app())
	i.deployment = simple(server().WithImage("example/server:2"))
	a.passCosts(app(), getDeployment)
	a.wantCondition(metav1.ConditionFalse, apimeta.ReasonChildTerminating)
	a.wantStalled(false)
	change(a, app(), func(d *appsv1.Deployment) { d.Finalizers = nil })
	a.passCosts(app(), patchDeployment)
	a.wantCondition(metav1.ConditionTrue, "Done")
}

func TestADeploymentThatIsGoneIsNotAppliedToItsSuccessor(t *testing.T) {
	t.Parallel()
	i := &intended{deployment: simple(server())}
	a := newArena(t, i.deploys)
	a.passCosts(app(), patchDeployment)
	stale := app()
	a.read(stale)
	a.cached.frozen = stale
	a.delete(app())
	i.deployment = simple(server().WithImage("example/server:2"))
	if requests, _ := a.pass(); cmp.Diff([]string{getDeployment}, requests) != "" {
		t.Errorf("the requests are %q", requests)
	}
	successor := a.foreign()
	if requests, _ := a.pass(); cmp.Diff([]string{getDeployment}, requests) != "" {
		t.Errorf("the requests are %q", requests)
	}
	a.wantCondition(metav1.ConditionFalse, conflict)
	after := app()
	a.read(after)
	if len(after.OwnerReferences) != 0 || after.Generation != successor.Generation {
		t.Errorf("the successor was touched: %+v", after)
	}
}
