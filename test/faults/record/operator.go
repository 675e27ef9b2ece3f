package record

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"avalonhosting.example/bucketoperator/test/faults"
)

const (
	fieldManager = "recordkeeper"
	finalizer    = "faults.example/record"
	// keyAnnotation is the record's key: it is on the object before there is a record.
	keyAnnotation = "faults.example/key"
	// keptAnnotation is the text that is known to be kept.
	keptAnnotation = "faults.example/kept"
)

// keeper is the controller.
type keeper struct {
	client.Client
	driver *driver
	resync time.Duration
}

// Reconcile is a pass over a ConfigMap.
func (k *keeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	note := &corev1.ConfigMap{}
	if err := k.Get(ctx, request.NamespacedName, note); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := k.pass(ctx, note)
	if errors.Is(err, context.Canceled) {
		return reconcile.Result{}, nil // the operator stops
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil // the cache is behind
	}
	return reconcile.Result{RequeueAfter: k.resync}, err
}

func (k *keeper) pass(ctx context.Context, note *corev1.ConfigMap) error {
	if !note.DeletionTimestamp.IsZero() {
		return k.tearDown(ctx, note)
	}
	key := string(note.UID)
	if !controllerutil.ContainsFinalizer(note, finalizer) || note.Annotations[keyAnnotation] != key {
		return k.patch(ctx, note, func() { // the next pass goes on
			controllerutil.AddFinalizer(note, finalizer)
			metav1.SetMetaDataAnnotation(&note.ObjectMeta, keyAnnotation, key)
		})
	}
	if err := k.keep(ctx, key, note); err != nil {
		return err
	}
	if err := k.deploy(ctx, note); err != nil {
		return err
	}
	if note.Annotations[keptAnnotation] == note.Data["text"] {
		return nil
	}
	return k.patch(ctx, note, func() { note.Annotations[keptAnnotation] = note.Data["text"] })
}

// keep has the server keep the text.
func (k *keeper) keep(ctx context.Context, key string, note *corev1.ConfigMap) error {
	answer, err := k.driver.call(ctx, "GET %s", key)
	if err != nil {
		return err
	}
	if words := append(strings.SplitN(answer, " ", 3), "", ""); words[0] == "VALUE" && words[2] == note.Data["text"] {
		return nil
	}
	_, err = k.driver.call(ctx, "PUT %s %s %s", key, note.ResourceVersion, note.Data["text"])
	return err
}

// deploy makes the Deployment what it has to be.
func (k *keeper) deploy(ctx context.Context, note *corev1.ConfigMap) error {
	live := &appsv1.Deployment{}
	err := k.Get(ctx, client.ObjectKeyFromObject(note), live)
	if apierrors.IsNotFound(err) {
		made := deploymentOf(note)
		if err := controllerutil.SetControllerReference(note, made, k.Scheme()); err != nil {
			return err
		}
		return k.Create(ctx, made)
	}
	if err != nil || *live.Spec.Replicas == 0 {
		return err
	}
	if !metav1.IsControlledBy(live, note) {
		return fmt.Errorf("the Deployment %s is somebody else's", live.Name)
	}
	base := live.DeepCopy()
	live.Spec.Replicas = new(int32(0))
	return k.Patch(ctx, live, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// tearDown deletes the record and lets the object go.
func (k *keeper) tearDown(ctx context.Context, note *corev1.ConfigMap) error {
	key := note.Annotations[keyAnnotation]
	if !controllerutil.ContainsFinalizer(note, finalizer) {
		return nil
	}
	if _, err := k.driver.call(ctx, "DEL %s", key); err != nil {
		return err
	}
	answer, err := k.driver.call(ctx, "GET %s", key)
	if err != nil {
		return err
	}
	if answer != answerNone {
		return fmt.Errorf("the record is still there: %s", answer)
	}
	return k.patch(ctx, note, func() { controllerutil.RemoveFinalizer(note, finalizer) })
}

func (k *keeper) patch(ctx context.Context, note *corev1.ConfigMap, change func()) error {
	base := note.DeepCopy()
	change()
	return k.Patch(ctx, note, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

func deploymentOf(note *corev1.ConfigMap) *appsv1.Deployment {
	app := map[string]string{"app": note.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: note.Name, Namespace: note.Namespace, Labels: maps.Clone(app)},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "reader", Image: "reader.example/reader:v1"}}},
			},
		},
	}
}

// operator is a running incarnation.
type operator struct{ stop func(testing.TB) }

// Stop implements faults.Operator.
func (o operator) Stop(t testing.TB) { o.stop(t) }

// start runs an incarnation on a namespace.
func start(t testing.TB, life *faults.Life, namespace, address string) faults.Operator {
	t.Helper()
	restConfig := life.Config()
	restConfig.QPS = -1
	restConfig.Wrap(life.API)
	manager, err := ctrl.NewManager(rest.CopyConfig(restConfig), ctrl.Options{
		Scheme: scheme, Logger: life.Log, HealthProbeBindAddress: "0", Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			// The API server puts a ConfigMap of its own into each namespace.
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(noteLabels)}},
		},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatalf("making the manager: %v", err)
	}
	timeout := life.CallTimeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	k := &keeper{
		Client: client.WithFieldOwner(manager.GetClient(), fieldManager),
		driver: &driver{address: address, timeout: timeout}, resync: life.Resync,
	}
	err = ctrl.NewControllerManagedBy(manager).Named(fieldManager).For(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](life.Backoff.Min, life.Backoff.Max),
		}).Complete(k)
	if err != nil {
		t.Fatalf("setting up the controller: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	var once sync.Once
	o := operator{func(t testing.TB) {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the operator ended with an error: %v", err)
			}
		})
	}}
	t.Cleanup(func() { o.Stop(t) })
	return o
}
