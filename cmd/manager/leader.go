package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// leaseName is the name of the lease that the leader holds.
const leaseName = "bucketoperator-leader"

// podNamespaceFile holds a pod's namespace, in every pod with a ServiceAccount.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// leaderOptions say how the leader is found. See docs/manager.md for how the
// times follow from how long a takeover may take.
type leaderOptions struct {
	elect         bool
	namespace     string
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

func (l *leaderOptions) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&l.elect, "leader-elect", false, "work only while holding the lease "+leaseName+", so that several can run")
	flags.StringVar(&l.namespace, "leader-election-namespace", "", "`namespace` of the lease (default the pod's own)")
	flags.DurationVar(&l.leaseDuration, "leader-elect-lease-duration", 7*time.Second, "how long after the last renewal seen another may take the lease")
	flags.DurationVar(&l.renewDeadline, "leader-elect-renew-deadline", 5*time.Second, "how long the leader tries to renew before it gives up")
	flags.DurationVar(&l.retryPeriod, "leader-elect-retry-period", time.Second, "how long between two tries to get or renew the lease")
}

// validate also fills in the namespace.
func (l *leaderOptions) validate() error {
	if !l.elect {
		return nil
	}
	switch {
	case l.retryPeriod <= 0:
		return errors.New("--leader-elect-retry-period must be above 0")
	case float64(l.renewDeadline) <= leaderelection.JitterFactor*float64(l.retryPeriod):
		return fmt.Errorf("--leader-elect-renew-deadline must be more than %v times --leader-elect-retry-period", leaderelection.JitterFactor)
	case l.leaseDuration <= l.renewDeadline:
		return errors.New("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")
	case l.leaseDuration%time.Second != 0:
		return errors.New("--leader-elect-lease-duration must be whole seconds: a lease has no finer ones")
	case l.namespace != "":
		return nil
	}
	namespace, err := os.ReadFile(podNamespaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("--leader-elect needs --leader-election-namespace outside a pod")
	}
	if err != nil {
		return fmt.Errorf("finding the namespace of the lease: %w; give --leader-election-namespace", err)
	}
	l.namespace = strings.TrimSpace(string(namespace))
	return nil
}

// lease is the lease of this process, or nil without leader election.
func (l *leaderOptions) lease(config *rest.Config) (*lease, error) {
	if !l.elect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process in the lease: %w", err)
	}
	// One hung request must not cost the lease.
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = max(time.Second, l.renewDeadline/2)
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the lease: %w", err)
	}
	watched := &lease{
		events: &lateRecorder{}, clock: clock.RealClock{}, overdue: 2 * l.leaseDuration, deadline: l.renewDeadline,
		revision: newRevision(),
	}
	watched.Interface = &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: leaseName},
		Client:    watchedLeases{LeasesGetter: client, lease: watched},
		LockConfig: resourcelock.ResourceLockConfig{
			// Two processes may share a host's name, so the name alone would not do.
			Identity: host + "_" + string(uuid.NewUUID()), EventRecorder: watched.events,
		},
	}
	return watched, nil
}

// lateRecorder is the recorder of a lease, which is made before the manager
// that has recorders.
type lateRecorder struct{ record.EventRecorder }
