package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"avalonhosting.example/bucketoperator/internal/egress"
)

func TestALeaderThatCouldNotRenewChangesNothingMore(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Method) }))
	t.Cleanup(server.Close)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	l := &lease{Interface: &stubLock{}, clock: clock, deadline: 5 * time.Second}
	client := &http.Client{Transport: l.fence(http.DefaultTransport)}
	send := func(method string) error {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	renew := func() {
		t.Helper()
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}); err != nil {
			t.Fatal(err)
		}
	}

	if err := send(http.MethodPost); err != nil {
		t.Errorf("a process that does not lead: %v", err) // it asks who may read its metrics
	}
	renew()
	clock.SetTime(clock.Now().Add(5*time.Second - 1))
	if err := send(http.MethodPatch); err != nil {
		t.Errorf("in time: %v", err)
	}
	clock.SetTime(clock.Now().Add(1))
	if err := send(http.MethodDelete); err == nil || !strings.Contains(err.Error(), leaseName) {
		t.Errorf("too late: %v, want an error that names the lease", err)
	}
	if err := send(http.MethodGet); err != nil {
		t.Errorf("reading: %v", err)
	}
	renew()
	if err := send(http.MethodPut); err != nil {
		t.Errorf("renewed: %v", err)
	}
	want := []string{http.MethodPost, http.MethodPatch, http.MethodGet, http.MethodPut}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the server got %v, want %v", got, want)
	}
}

// Whatever protocol it speaks, and on a connection that is open already.
func TestALeaderThatWasPausedSendsNothingByTCPEither(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	got := make(chan string)
	go func() {
		defer close(got)
		peer, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = peer.Close() }()
		all, _ := io.ReadAll(peer)
		got <- string(all)
	}()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
	l := &lease{Interface: &stubLock{}, clock: clock, deadline: 5 * time.Second}
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}); err != nil {
		t.Fatal(err)
	}
	dialer := &egress.Dialer{AllowLoopback: true, Fence: l.mayAct}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	write := func(statement string) error {
		_, err := io.WriteString(conn, statement)
		return err
	}
	if err := write("BEGIN;"); err != nil {
		t.Errorf("while it leads: %v", err)
	}
	clock.SetTime(clock.Now().Add(5 * time.Second)) // paused
	if err := write("COMMIT;"); !egress.IsFenced(err) || !strings.Contains(err.Error(), leaseName) {
		t.Errorf("after the pause: %v, want an error that names the lease", err)
	}
	if _, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String()); !egress.IsFenced(err) {
		t.Errorf("another connection: %v, want it to be refused", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if all := <-got; all != "BEGIN;" {
		t.Errorf("the peer got %q", all)
	}
}

func TestALeaseThatAnotherMayHoldIsNotReleasedAndTheFenceStays(t *testing.T) {
	t.Parallel()
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	for name, late := range map[string]time.Duration{"in time": 0, "too late": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
			l := &lease{Interface: &stubLock{}, clock: clock, deadline: 5 * time.Second}
			if err := l.Update(t.Context(), mine); err != nil {
				t.Fatal(err)
			}
			clock.SetTime(clock.Now().Add(late))
			err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{})
			if refused := err != nil; refused != (late > 0) {
				t.Errorf("the release ended with %v", err)
			}
			if !l.stale() {
				t.Error("after the release the fence is open")
			}
		})
	}
}

// Another may lead before the answer to the release is here, or if it never comes.
func TestTheFenceShutsBeforeTheLeaseIsReleased(t *testing.T) {
	t.Parallel()
	lock := &stubLock{}
	l := &lease{Interface: lock, clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), deadline: 5 * time.Second}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	if err := l.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	sent := 0
	lock.during = func() {
		if sent++; !l.stale() {
			t.Error("the fence is open while the release is under way")
		}
	}
	lock.err = errors.New("a conflict")
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); !errors.Is(err, lock.err) {
		t.Errorf("the release ended with %v, want %v", err, lock.err)
	}
	if l.Update(t.Context(), mine) == nil || !l.stale() {
		t.Error("it holds on to a lease that it has begun to give back")
	}
	lock.err = nil
	if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil {
		t.Errorf("the release is not tried again: %v", err)
	}
	if sent != 2 || !l.stale() {
		t.Errorf("%d releases were sent, want 2; the fence is shut: %t", sent, l.stale())
	}
}

func TestALeaderThatSeesAnotherHoldItsLeaseIsNoneAnyMore(t *testing.T) {
	t.Parallel()
	lock := &stubLock{holder: "another"}
	l := &lease{Interface: lock, clock: clocktesting.NewFakePassiveClock(time.Unix(1, 0)), deadline: 5 * time.Second}
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	read := func() {
		t.Helper()
		if _, _, err := l.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read()
	if l.stale() {
		t.Error("the fence of a standby is shut")
	}
	if err := l.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	for _, lock.holder = range []string{"me", ""} {
		if read(); l.stale() {
			t.Errorf("the fence of a leader is shut, with the holder %q", lock.holder)
		}
	}
	lock.holder = "another"
	if read(); !l.stale() {
		t.Error("the fence of a leader whose lease another holds is open")
	}
	if l.Update(t.Context(), mine) == nil || l.Create(t.Context(), mine) == nil {
		t.Error("it takes the lease again, and would lead behind a shut fence")
	}
}

// suspended is a clock of a process that was suspended along with its machine.
type suspended struct{ wall, process time.Duration }

func (c suspended) Now() time.Time                { return time.Unix(1, 0).Add(c.wall) }
func (c suspended) Since(time.Time) time.Duration { return c.process }

func TestTheTimeThatAMachineWasSuspendedCounts(t *testing.T) {
	t.Parallel()
	renewed := time.Unix(1, 0)
	for clock, want := range map[suspended]bool{
		{wall: time.Second, process: time.Second}:    false,
		{wall: time.Hour, process: time.Second}:      true, // suspended
		{wall: -time.Hour, process: time.Second}:     false,
		{wall: -time.Hour, process: 5 * time.Second}: true, // set back
	} {
		l := &lease{Interface: &stubLock{}, clock: clock, deadline: 5 * time.Second}
		l.renewed.Store(&renewed)
		if l.stale() != want {
			t.Errorf("with %+v since the renewal stale is %t", clock, !want)
		}
	}
}

func TestWithoutLeaderElectionThereIsNoFence(t *testing.T) {
	t.Parallel()
	if got := (*lease)(nil).fence(http.DefaultTransport); got != http.DefaultTransport {
		t.Errorf("fence = %v", got)
	}
	if err := (*lease)(nil).mayAct(); err != nil {
		t.Errorf("mayAct = %v", err)
	}
}
