package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// Options are the operator's settings.
type Options struct {
	// Groups are the names of the definitions to run; all when empty.
	Groups []string
	// Egress is how kinds call the outside: what they make their clients of.
	Egress egress.Settings
	// Providers holds a factory for each type of provider.
	Providers provider.Registry
	// DefaultEndpoint serves buckets that name no provider in namespaces that
	// have no default one.
	DefaultEndpoint string
	// MaxConcurrentReconciles is how many objects of a kind are worked on at once,
	// without those that wait for an answer from outside.
	MaxConcurrentReconciles int
	// Resync is how often an object is compared with what is outside the cluster.
	Resync time.Duration
	// Registry takes the engine's metrics; none when nil.
	Registry prometheus.Registerer
	// Backoff bounds the delays between failed passes over one object; the
	// zero value means 250 ms to 5 min.
	Backoff Bounds
	// Poll bounds the delays between looks at something in the making outside
	// the cluster; the zero value means 1 s to 30 s.
	Poll Bounds
	// SkipNameValidation lets a process set the controllers up more than once, as tests do.
	SkipNameValidation bool
}

// Bounds are the least and the greatest of delays.
type Bounds struct{ Min, Max time.Duration }

// or is b, or the default where b is zero.
func (b Bounds) or(least, greatest time.Duration) Bounds {
	if b == (Bounds{}) {
		return Bounds{Min: least, Max: greatest}
	}
	return b
}

// Setup is what a definition sets its controllers up with.
type Setup struct {
	// Manager runs the controllers.
	Manager ctrl.Manager
	// Client reads from the manager's cache and writes to the API server.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Metadata reads metadata from memory, of objects of the types that are
	// selected as Metadata: name, namespace, uid, resourceVersion and
	// deletionTimestamp, the finalizers of definitions and one other, and the
	// controller's owner reference. It takes *metav1.PartialObjectMetadata, and
	// lists of it, with their kind set.
	Metadata client.Reader
	// Engine are the options of the kinds' reconcilers.
	Engine engine.Options
	// Options are the operator's settings, with defaults filled in.
	Options Options

	caches *caches
}

// callsInFlight is how many calls to the outside may be under way at once.
const callsInFlight = 128

// Controller are the options of a controller whose passes stay in the cluster.
func (s *Setup) Controller() engine.ControllerOptions {
	return engine.ControllerOptions{
		Workers: s.Options.MaxConcurrentReconciles, Registry: s.Options.Registry, SkipNameValidation: s.Options.SkipNameValidation,
	}
}

// CallingController are the options of a controller whose passes call the outside.
func (s *Setup) CallingController() engine.ControllerOptions {
	o := s.Controller()
	o.Waiting = callsInFlight
	return o
}

// WatchMetadata asks for passes when an object of a type that is selected as
// Metadata changes, for what enqueue makes of it. That and the predicates may get
// the whole object or its metadata, and must read no more of it than Metadata has.
func (s *Setup) WatchMetadata(object *metav1.PartialObjectMetadata, enqueue handler.MapFunc, predicates ...predicate.Predicate) (source.Source, error) {
	sources := watches{source.Kind[client.Object](s.caches.metadata, object, handler.EnqueueRequestsFromMapFunc(enqueue), predicates...)}
	if gvk := object.GroupVersionKind(); s.caches.own[gvk] {
		own, err := s.caches.newObject(gvk)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source.Kind(s.caches.objects, own, handler.EnqueueRequestsFromMapFunc(enqueue), predicates...))
	}
	return sources, nil
}

// watches are several sources as one.
type watches []source.SyncingSource

// Start starts them all.
func (w watches) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, s := range w {
		if err := s.Start(ctx, queue); err != nil {
			return err
		}
	}
	return nil
}

// WaitForSync waits until all have listed what there is.
func (w watches) WaitForSync(ctx context.Context) error {
	for _, s := range w {
		if err := s.WaitForSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// SetUp adds the controllers of the definitions that options name to the
// manager, whose scheme and cache must have been made of all definitions, by
// NewScheme and by CacheOptions for the same namespaces. What it returns waits
// until all that these controllers read is in memory.
func SetUp(ctx context.Context, mgr ctrl.Manager, definitions []Definition, namespaces []string, options Options) (filled func(context.Context) error, err error) {
	if err := Validate(definitions); err != nil {
		return nil, err
	}
	caches, err := newCaches(mgr, definitions, namespaces)
	if err != nil {
		return nil, err
	}
	options.Poll = options.Poll.or(time.Second, 30*time.Second)
	options.Egress = options.Egress.WithDefaults()
	s := &Setup{
		Manager: mgr, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Metadata: metadataReader{caches},
		Engine: engine.Options{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme(),
			Recorder: mgr.GetEventRecorder("bucketoperator"), Resync: options.Resync,
			Backoff: engine.Bounds(options.Backoff),
		},
		Options: options, caches: caches,
	}
	enabled := Named(definitions, options.Groups)
	if options.Registry != nil {
		s.Engine.Metrics = engine.NewMetrics(options.Registry)
		if err := options.Registry.Register(engine.NewObjectGauge(ctx, mgr.GetCache(), lists(enabled))); err != nil {
			return nil, fmt.Errorf("registering the gauge of objects: %w", err)
		}
	}
	for _, d := range enabled {
		if err := s.add(ctx, d); err != nil {
			return nil, fmt.Errorf("definition %q: %w", d.Name, err)
		}
	}
	return func(ctx context.Context) error { return caches.fill(ctx, enabled) }, nil
}

func (s *Setup) add(ctx context.Context, d Definition) error {
	for _, index := range d.Indexes {
		if err := s.caches.index(ctx, index); err != nil {
			return err
		}
	}
	return d.SetUp(s)
}

// lists makes an empty list of each kind.
func lists(definitions []Definition) map[string]func() client.ObjectList {
	lists := map[string]func() client.ObjectList{}
	for _, d := range definitions {
		for _, kind := range d.Kinds {
			lists[kind.name()] = func() client.ObjectList { return kind.List.DeepCopyObject().(client.ObjectList) }
		}
	}
	return lists
}
