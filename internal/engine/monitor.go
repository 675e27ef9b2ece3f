package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// monitorRestart bounds how soon a monitor that ended by itself is started again.
var monitorRestart = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: time.Minute}

// monitorRequest is what a pass asks for by Pass.Monitor.
type monitorRequest struct {
	key   string
	watch func(ctx context.Context, wake func())
}

// monitors run what kinds watch besides the passes. They work while Start runs,
// which a manager calls on the leader only.
type monitors struct {
	mu   sync.Mutex
	ctx  context.Context // nil before Start
	of   map[types.NamespacedName]*monitor
	wait sync.WaitGroup
}

type monitor struct {
	monitorRequest
	uid    types.UID
	wake   func()
	cancel context.CancelFunc // nil before Start
}

func newMonitors() *monitors {
	return &monitors{of: map[types.NamespacedName]*monitor{}}
}

// NeedLeaderElection is true: only the leader acts on what a monitor sees.
func (m *monitors) NeedLeaderElection() bool { return true }

// Start lets monitors run until ctx ends, and waits for them to end.
func (m *monitors) Start(ctx context.Context) error {
	m.mu.Lock()
	m.ctx = ctx
	for name, monitor := range m.of {
		m.start(name, monitor)
	}
	m.mu.Unlock()
	<-ctx.Done()
	m.wait.Wait()
	return nil
}

// set runs the monitor that a pass asked for, and ends another one of the object.
func (m *monitors) set(name types.NamespacedName, uid types.UID, want *monitorRequest, wake func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.of[name]; have != nil && want != nil && have.uid == uid && have.key == want.key {
		return
	}
	m.remove(name)
	if want == nil {
		return
	}
	m.of[name] = &monitor{monitorRequest: *want, uid: uid, wake: wake}
	if m.ctx != nil {
		m.start(name, m.of[name])
	}
}

func (m *monitors) start(name types.NamespacedName, monitor *monitor) {
	if m.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(m.ctx)
	monitor.cancel = cancel
	m.wait.Go(func() {
		defer cancel()
		backoff := monitorRestart
		for ctx.Err() == nil {
			runMonitor(ctx, name, monitor)
			select {
			case <-ctx.Done():
			case <-clock.RealClock{}.After(backoff.Step()):
			}
		}
	})
}

// end ends the monitor of an object that is gone.
func (m *monitors) end(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(name)
}

func (m *monitors) remove(name types.NamespacedName) {
	if have := m.of[name]; have != nil && have.cancel != nil {
		have.cancel()
	}
	delete(m.of, name)
}

// runMonitor runs a monitor once. A panic in it is one object's trouble.
func runMonitor(ctx context.Context, name types.NamespacedName, monitor *monitor) {
	defer func() {
		if p := recover(); p != nil {
			logf.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "A monitor has failed", "namespace", name.Namespace, "name", name.Name)
		}
	}()
	monitor.watch(ctx, monitor.wake)
}
