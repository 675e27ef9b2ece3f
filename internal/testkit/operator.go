package testkit

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/operator"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// Settings are how an Operator differs from the usual one. The zero value is
// the usual one, with delays that suit a test.
type Settings struct {
	// Definitions are the API groups that the operator is made of; the product's
	// when nil.
	Definitions []operator.Definition
	// Groups are the names of the definitions to run, as --controllers has them; all
	// when empty.
	Groups []string
	// DefaultEndpoint is the operator's; usually none.
	DefaultEndpoint string
	// RefuseLoopback refuses loopback endpoints of tenants, as in production.
	RefuseLoopback bool
	// Resync is the operator's --resync-interval; 0 means a year. After a restart an object is
	// compared at any time within it: of an hour, some test would meet that time.
	Resync time.Duration
	// CallTimeout bounds a call to the outside; 0 means 10 s.
	CallTimeout time.Duration
	// Backoff and Poll bound delays; zero values mean 20 ms to 1 s.
	Backoff, Poll controllers.Bounds
	// WrapAPI stands between the operator and the API server.
	WrapAPI func(http.RoundTripper) http.RoundTripper
	// WrapProvider stands between the operator and its providers.
	WrapProvider func(http.RoundTripper) http.RoundTripper
	// Cache changes how the manager's cache is made.
	Cache func(*cache.Options)
	// Log takes what the operator logs; nothing when unset.
	Log logr.Logger
	// Client is the base of the operator's configuration; the administrator's when nil.
	Client *rest.Config
}

// Operator is a running incarnation of the operator's controllers.
type Operator struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	once   sync.Once
}

// quiet gives controller-runtime a logger for those who bring none.
var quiet sync.Once

// Start runs the operator's controllers on the world's namespace until Stop,
// or the end of the test.
func (w *World) Start(t testing.TB, settings Settings) *Operator {
	t.Helper()
	restConfig := settings.Client
	if restConfig == nil {
		restConfig = testplane.Config()
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = -1
	if settings.WrapAPI != nil {
		restConfig.Wrap(settings.WrapAPI)
	}
	definitions := settings.Definitions
	if definitions == nil {
		definitions = controllers.Definitions
	}
	namespaces := []string{w.Namespace}
	cacheOptions := operator.CacheOptions(definitions, namespaces)
	if settings.Cache != nil {
		settings.Cache(&cacheOptions)
	}
	quiet.Do(func() { ctrl.SetLogger(logr.Discard()) })
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: operator.NewScheme(definitions), Cache: cacheOptions, Logger: settings.Log,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatalf("making the manager: %v", err)
	}
	outside := egress.Settings{AllowLoopback: !settings.RefuseLoopback, Pool: egress.NewPool(0), Timeout: settings.CallTimeout}
	factory := &httpapi.Factory{Egress: outside, Wrap: settings.WrapProvider}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	_, err = operator.SetUp(ctx, mgr, definitions, namespaces, controllers.Options{
		Groups:                  settings.Groups,
		Egress:                  outside,
		Providers:               provider.Registry{string(storagev1.ProviderTypeHTTP): factory},
		DefaultEndpoint:         settings.DefaultEndpoint,
		MaxConcurrentReconciles: 8,
		Resync:                  orDefault(settings.Resync, 365*24*time.Hour),
		Backoff:                 orBounds(settings.Backoff),
		Poll:                    orBounds(settings.Poll),
		SkipNameValidation:      true,
	})
	if err != nil {
		cancel()
		t.Fatalf("setting up the controllers: %v", err)
	}
	o := &Operator{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.err = mgr.Start(ctx)
		factory.Close()
	}()
	t.Cleanup(func() { o.Stop(t) })
	return o
}

// Stop stops the operator, waits until it is gone, and fails the test if it
// ended with an error.
func (o *Operator) Stop(t testing.TB) {
	o.once.Do(func() {
		o.cancel()
		<-o.done
		if o.err != nil {
			t.Errorf("the operator ended with an error: %v", o.err)
		}
	})
}

// Kill tells the operator to stop and does not wait for it.
func (o *Operator) Kill() { o.cancel() }

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func orBounds(b controllers.Bounds) controllers.Bounds {
	if b == (controllers.Bounds{}) {
		return controllers.Bounds{Min: 20 * time.Millisecond, Max: time.Second}
	}
	return b
}
