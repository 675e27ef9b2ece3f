package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"avalonhosting.example/bucketoperator/internal/programs"
	"avalonhosting.example/bucketoperator/localcluster"
)

// operator is the operator's process, at work in one namespace.
type operator struct {
	program *localcluster.Program
	metrics string // URL
	ready   string // URL
}

// ended is closed when the operator is gone.
func (o *operator) ended() <-chan struct{} {
	if o == nil {
		return nil
	}
	return o.program.Ended()
}

// never is the interval of resyncs: these are spread over an interval, so that
// a short time would see some of them, or not, by chance.
const never = 365 * 24 * time.Hour

func (w *world) startOperator(ctx context.Context, namespace string, flags ...string) (*operator, error) {
	metricsAddress, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	probesAddress, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	program, err := localcluster.StartProgram("the operator", w.file("manager"), append([]string{
		"--kubeconfig=" + w.operators.path, "--namespaces=" + namespace,
		"--leader-elect", "--leader-election-namespace=" + programs.OperatorNamespace,
		// With its own times, a machine that is busy with other things would end it.
		"--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s",
		"--metrics-bind-address=" + metricsAddress, "--metrics-secure=false", "--health-probe-bind-address=" + probesAddress,
		"--default-provider-endpoint=" + w.provider.HostURL(), "--allow-loopback-endpoints",
		"--max-concurrent-reconciles=" + strconv.Itoa(w.workers), "--resync-interval=" + never.String(),
	}, flags...), w.log("manager"))
	if err != nil {
		return nil, err
	}
	return &operator{program: program, metrics: "http://" + metricsAddress + "/metrics", ready: "http://" + probesAddress + "/readyz"}, nil
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// startStandby starts the operator while the lease is held by the benchmark,
// and returns when its caches are filled and queued requests wait.
func (w *world) startStandby(ctx context.Context, namespace string, queued int, flags ...string) (*operator, error) {
	if err := w.setLease(ctx, "bench"); err != nil {
		return nil, err
	}
	o, err := w.startOperator(ctx, namespace, flags...)
	if err != nil {
		return nil, err
	}
	return o, o.until(ctx, "its caches to be filled", func(ctx context.Context) (bool, error) {
		if !o.isReady(ctx) {
			return false, nil
		}
		m, err := scrape(ctx, o.metrics)
		return err == nil && m.waiting() >= queued, nil
	})
}

// lead lets the operator lead, and returns when it began to.
func (w *world) lead(ctx context.Context, o *operator) (time.Time, error) {
	if err := w.setLease(ctx, ""); err != nil {
		return time.Time{}, err
	}
	var since time.Time
	err := o.until(ctx, "it to lead", func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := w.admin.Get(ctx, leaseName, lease); err != nil {
			return false, err
		}
		if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.AcquireTime == nil {
			return false, nil
		}
		since = lease.Spec.AcquireTime.Time
		return true, nil
	})
	return since, err
}

// leaseName is the name of the operator's lease.
var leaseName = types.NamespacedName{Namespace: programs.OperatorNamespace, Name: "bucketoperator-leader"}

// setLease gives the lease to a holder for an hour; to nobody when it is empty.
func (w *world) setLease(ctx context.Context, holder string) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseName.Namespace, Name: leaseName.Name}}
	getErr := w.admin.Get(ctx, leaseName, lease)
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](3600), AcquireTime: &now, RenewTime: &now, LeaseTransitions: ptr.To[int32](0),
	}
	var err error
	switch {
	case apierrors.IsNotFound(getErr):
		err = w.admin.Create(ctx, lease)
	case getErr != nil:
		err = getErr
	default:
		err = w.admin.Update(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("holding the operator's lease: %w", err)
	}
	return nil
}

func (o *operator) isReady(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.ready, http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// until waits for a condition while the operator runs.
func (o *operator) until(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		if err := running(o.program); err != nil {
			return false, err
		}
		return condition(ctx)
	})
	if err != nil {
		return fmt.Errorf("waiting for the operator, %s: %w", what, err)
	}
	return nil
}

const (
	settlePoll  = 200 * time.Millisecond
	settledFor  = 4 // looks in a row
	collections = 2 // garbage found in the first may be freed in the second
)

// settle waits until the operator has nothing to do any more, and returns its
// metrics then.
func (o *operator) settle(ctx context.Context) (metrics, error) {
	var now metrics
	passes, quiet := -1, 0
	err := wait.PollUntilContextTimeout(ctx, settlePoll, patience, true, func(ctx context.Context) (bool, error) {
		if err := running(o.program); err != nil {
			return false, err
		}
		var err error
		if now, err = scrape(ctx, o.metrics); err != nil {
			return false, err
		}
		if now.queued() > 0 || now.passes() != passes {
			passes, quiet = now.passes(), 0
			return false, nil
		}
		quiet++
		return quiet == settledFor, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the operator to come to rest: %w", err)
	}
	return now, nil
}

// heap is what is on the operator's heap after garbage collection, in bytes.
// Each look at its metrics makes some garbage, which brings the next one on.
func (o *operator) heap(ctx context.Context) (float64, error) {
	before, err := scrape(ctx, o.metrics)
	if err != nil {
		return 0, err
	}
	live := 0.0
	err = wait.PollUntilContextTimeout(ctx, time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		now, err := scrape(ctx, o.metrics)
		if err != nil {
			return false, err
		}
		live = now.liveHeap()
		return now.collections() >= before.collections()+collections, nil
	})
	if err != nil {
		return 0, fmt.Errorf("waiting for the operator to collect its garbage: %w", err)
	}
	return live, nil
}
