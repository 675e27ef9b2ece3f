// Package controllers is the list of the kinds that the operator reconciles
// and of the providers that it knows: one line each.
package controllers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/bucketproviderconfig"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/controllers/storagebucket"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/fairqueue"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// Groups are the names that --controllers takes: each stands for the kinds
// that only make sense together.
var Groups = []string{"storagebucket"}

// Options are what the controllers are set up with.
type Options struct {
	// Groups are the controllers to run; all of Groups when empty.
	Groups []string
	// Providers holds a factory for each type of provider.
	Providers provider.Registry
	// DefaultEndpoint serves buckets that name no provider in namespaces that
	// have no default one.
	DefaultEndpoint string
	// MaxConcurrentReconciles is how many objects of a kind are worked on at once.
	MaxConcurrentReconciles int
	// Resync is how often an object is compared with what is outside the cluster.
	Resync time.Duration
	// Registry takes the engine's metrics; none when nil.
	Registry prometheus.Registerer
	// Backoff bounds the delays between failed passes over one object; the
	// zero value means 250 ms to 5 min.
	Backoff Bounds
	// Poll bounds the delays between looks at a bucket in the making; the zero
	// value means 1 s to 30 s.
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

// NewScheme is the scheme of all kinds that the operator deals with.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(storagev1.AddToScheme(scheme))
	return scheme
}

// CacheOptions are those of the manager's cache. Of the kinds that the operator
// makes it holds only the operator's own objects. Empty namespaces mean all.
func CacheOptions(namespaces []string) cache.Options {
	own := cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{engine.Label: engine.LabelValue}), Transform: child.Compact,
	}
	options := metadataCacheOptions(namespaces)
	options.ByObject = map[client.Object]cache.ByObject{
		&corev1.Secret{}:             own,
		&corev1.Service{}:            own,
		&discoveryv1.EndpointSlice{}: own,

		&storagev1.StorageBucket{}:        {Transform: storagebucket.Traits.Compact},
		&storagev1.BucketProviderConfig{}: {Transform: bucketproviderconfig.Traits.Compact},
	}
	return options
}

// asCache makes the manager treat a cache as one, in whatever mode: it is
// started before any controller, on a standby too, and stopped after them.
type asCache struct{ cache.Cache }

// GetCache is how the manager tells.
func (c asCache) GetCache() cache.Cache { return c.Cache }

func metadataCacheOptions(namespaces []string) cache.Options {
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// Setup is what all kinds are set up with.
type setup struct {
	mgr        ctrl.Manager
	metadata   cache.Cache
	access     outside.Access
	engine     engine.Options
	controller engine.ControllerOptions
	options    Options
}

// SetUp adds the controllers to the manager, whose cache must have been made
// with CacheOptions for the same namespaces.
func SetUp(ctx context.Context, mgr ctrl.Manager, namespaces []string, options Options) error {
	metadata, err := newMetadataCache(mgr, namespaces)
	if err != nil {
		return err
	}
	if err := index.Register(ctx, mgr.GetFieldIndexer(), metadata); err != nil {
		return err
	}
	s := setup{
		mgr: mgr, metadata: metadata, options: options,
		access: outside.Access{
			Live: mgr.GetAPIReader(), Metadata: metadata, Providers: options.Providers, Configs: outside.NewConfigReader(mgr.GetAPIReader()),
		},
		engine: engine.Options{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme(),
			Recorder: mgr.GetEventRecorder("bucketoperator"), Resync: options.Resync, Backoff: engine.Bounds(options.Backoff),
		},
		controller: engine.ControllerOptions{
			Workers: options.MaxConcurrentReconciles, SkipNameValidation: options.SkipNameValidation,
		},
	}
	if options.Registry != nil {
		s.controller.Backlogs = fairqueue.NewBacklogs()
		if err := options.Registry.Register(s.controller.Backlogs); err != nil {
			return fmt.Errorf("registering the metrics of queues: %w", err)
		}
		s.engine.Metrics = engine.NewMetrics(options.Registry)
		if err := options.Registry.Register(engine.NewObjectGauge(ctx, mgr.GetCache(), lists)); err != nil {
			return fmt.Errorf("registering the gauge of objects: %w", err)
		}
	}
	for _, group := range Groups {
		if len(options.Groups) > 0 && !slices.Contains(options.Groups, group) {
			continue
		}
		if err := kinds[group](s); err != nil {
			return err
		}
	}
	return nil
}

// lists holds one line for each kind whose objects are counted.
var lists = map[string]func() client.ObjectList{
	"StorageBucket":        func() client.ObjectList { return &storagev1.StorageBucketList{} },
	"BucketProviderConfig": func() client.ObjectList { return &storagev1.BucketProviderConfigList{} },
}

// kinds holds one line for each group of Groups.
var kinds = map[string]func(setup) error{
	"storagebucket": setup.storageBucket,
}

func (s setup) storageBucket() error {
	poll := s.options.Poll.or(time.Second, 30*time.Second)
	bucket := &storagebucket.Kind{
		Client: s.mgr.GetClient(), Access: s.access, DefaultEndpoint: s.options.DefaultEndpoint,
		MinPoll: poll.Min, MaxPoll: poll.Max, Random: rand.Float64,
	}
	if err := storagebucket.SetUp(s.mgr, bucket, s.metadata, s.engine, s.waiting()); err != nil {
		return err
	}
	config := &bucketproviderconfig.Kind{Client: s.mgr.GetClient(), Access: s.access}
	return bucketproviderconfig.SetUp(s.mgr, config, s.metadata, s.engine, s.controller)
}

// callsInFlight is how many calls to the outside may be under way at once.
const callsInFlight = 128

// waiting are the options of a controller whose passes wait for the outside.
func (s setup) waiting() engine.ControllerOptions {
	o := s.controller
	o.Waiting = callsInFlight
	return o
}

// bareMetadata drops what nobody here reads of others' objects. An annotation
// may hold the whole object as it was applied, a Secret's values among it.
func bareMetadata(in any) (any, error) {
	if object, ok := in.(client.Object); ok {
		object.SetManagedFields(nil)
		object.SetAnnotations(nil)
	}
	return in, nil
}

// newMetadataCache is a cache of the metadata of users' Secrets and Services.
// It is not the manager's, as that one selects the operator's own by label.
func newMetadataCache(mgr ctrl.Manager, namespaces []string) (cache.Cache, error) {
	options := metadataCacheOptions(namespaces)
	options.DefaultTransform = bareMetadata
	options.Scheme, options.Mapper, options.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	metadata, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("making the cache of metadata: %w", err)
	}
	if err := mgr.Add(asCache{metadata}); err != nil {
		return nil, fmt.Errorf("adding the cache of metadata to the manager: %w", err)
	}
	return metadata, nil
}
