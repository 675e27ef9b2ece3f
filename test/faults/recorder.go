package faults

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Revision is a state that an object was in.
type Revision struct {
	// Resource is the object's.
	Resource string
	Object   client.Object
	Deleted  bool
}

// recorder follows a namespace with watches of its own, so that no revision of
// an object stays unseen.
type recorder struct {
	client    client.WithWatch
	namespace string
	resources []Resource
	seen      func(resource string, object client.Object)

	mu      sync.Mutex
	history []Revision
	live    map[string]map[string]client.Object
	wait    sync.WaitGroup
	cancel  context.CancelFunc
}

// record starts a recorder. seen is called with each revision of an object, as
// it comes.
func record(ctx context.Context, c client.WithWatch, namespace string, resources []Resource, seen func(string, client.Object)) (*recorder, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := &recorder{client: c, namespace: namespace, resources: resources, seen: seen, cancel: cancel, live: map[string]map[string]client.Object{}}
	for _, resource := range resources {
		kind, list := resource.Name, resource.List()
		r.live[kind] = map[string]client.Object{}
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(resource.Labels)); err != nil {
			cancel()
			return nil, fmt.Errorf("listing %s: %w", kind, err)
		}
		// What is there before the run, such as the ConfigMap of each namespace.
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			r.live[kind][object.GetName()] = object
			return nil
		})
		w, err := c.Watch(ctx, list, &client.ListOptions{
			Namespace: namespace, LabelSelector: labels.SelectorFromSet(resource.Labels), Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
		})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("watching %s: %w", kind, err)
		}
		r.wait.Go(func() { r.follow(kind, w) })
	}
	return r, nil
}

func (r *recorder) follow(kind string, w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		if event.Type != watch.Deleted {
			r.seen(kind, object)
		}
		r.mu.Lock()
		r.history = append(r.history, Revision{Resource: kind, Object: object, Deleted: event.Type == watch.Deleted})
		if event.Type == watch.Deleted {
			delete(r.live[kind], object.GetName())
		} else {
			r.live[kind][object.GetName()] = object
		}
		r.mu.Unlock()
	}
}

func (r *recorder) stop() {
	r.cancel()
	r.wait.Wait()
}

// behind says what the recorder has not seen yet; empty when it has seen all.
func (r *recorder) behind(ctx context.Context) string {
	for _, resource := range r.resources {
		kind, list := resource.Name, resource.List()
		if err := r.client.List(ctx, list, client.InNamespace(r.namespace), client.MatchingLabels(resource.Labels)); err != nil {
			return err.Error()
		}
		n := 0
		missing := ""
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			n++
			if known := r.get(kind, object.GetName()); known == nil || known.GetResourceVersion() != object.GetResourceVersion() {
				missing = object.GetName()
			}
			return nil
		})
		if missing != "" || n != len(r.all(kind)) {
			return fmt.Sprintf("the recorder has not seen all of %s: %s", kind, missing)
		}
	}
	return ""
}

func (r *recorder) get(kind, name string) client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[kind][name]
}

func (r *recorder) all(kind string) map[string]client.Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]client.Object{}
	maps.Copy(all, r.live[kind])
	return all
}

func (r *recorder) revisions() []Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Revision{}, r.history...)
}

// Of is the object of that name as last seen; a nil pointer when there is none.
func Of[T client.Object](r *Execution, resource, name string) T {
	object, _ := r.recorder.get(resource, name).(T)
	return object
}
