package record

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"avalonhosting.example/bucketoperator/internal/egress"
)

// serve is a server of records, and its address as a Record has it.
func serve(t *testing.T) (*server, Target) {
	t.Helper()
	s, err := newServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s, Target{Record: types.NamespacedName{Namespace: "team-a", Name: "note"}, Address: s.listener.Addr().String()}
}

// A leader that was held up sends what its successor has changed meanwhile.
func TestALatePutTakesNothingBack(t *testing.T) {
	t.Parallel()
	s, target := serve(t)
	client := NewClient(egress.Settings{AllowLoopback: true}.WithDefaults())
	if err := client.Put(t.Context(), target, "key", Value{Version: 2, Text: "second one"}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		when  string
		after func() error
		kept  string
	}{
		{"after a later version", func() error { return nil }, "second one"},
		{"after a delete", func() error { return client.Delete(t.Context(), target, "key") }, ""},
	} {
		if err := tc.after(); err != nil {
			t.Fatal(err)
		}
		err := client.Put(t.Context(), target, "key", Value{Version: 1, Text: "first"})
		if _, refused := errors.AsType[*RefusedError](err); !refused || s.text("key") != tc.kept {
			t.Errorf("%s: %v, and %q is kept", tc.when, err, s.text("key"))
		}
	}
}

func TestACallGoesThroughEgress(t *testing.T) {
	t.Parallel()
	_, target := serve(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	shut := func() error { return errors.New("another leads") }
	for name, tc := range map[string]struct {
		settings egress.Settings
		address  string
		class    egress.Class // empty for an unansweredError
	}{
		"a loopback address is refused": {egress.Settings{}, target.Address, egress.AddressRefused},
		"a shut fence lets nothing out": {egress.Settings{AllowLoopback: true, Fence: shut}, target.Address, egress.Fenced},
		"a silent server is given up":   {egress.Settings{AllowLoopback: true, Timeout: 50 * time.Millisecond}, silent.Addr().String(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resumed := false
			ctx := egress.WithYield(t.Context(), func() func() { return func() { resumed = true } })
			_, err := NewClient(tc.settings.WithDefaults()).Get(ctx, Target{Record: target.Record, Address: tc.address}, "key")
			held, _ := errors.AsType[*egress.Error](err)
			_, unanswered := errors.AsType[*unansweredError](err)
			if tc.class == "" && (!unanswered || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, net.ErrClosed)) ||
				tc.class != "" && (held == nil || held.Class != tc.class) {
				t.Errorf("the call ends with %v, want class %q", err, tc.class)
			}
			if fenced := tc.class == egress.Fenced; resumed == fenced {
				t.Errorf("the worker was given back: %t", resumed)
			}
		})
	}
}
