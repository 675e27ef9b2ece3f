package egress

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWhatIsMadeOfSettingsKeepsToThem(t *testing.T) {
	t.Parallel()
	address := listen(t).Addr().String()
	shut := func() error { return errors.New("another leads") }
	for name, tc := range map[string]struct {
		settings Settings
		refused  Class // empty for a connection
	}{
		"loopback is refused":                 {Settings{}, AddressRefused},
		"loopback is for those who allow it":  {Settings{AllowLoopback: true}, ""},
		"behind a shut fence nothing goes on": {Settings{AllowLoopback: true, Fence: shut}, Fenced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := tc.settings.WithDefaults().Dialer().DialContext(t.Context(), "tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			refused, _ := errors.AsType[*Error](err)
			if tc.refused == "" && err != nil || tc.refused != "" && (refused == nil || refused.Class != tc.refused) {
				t.Errorf("dialling: %v, want class %q", err, tc.refused)
			}
		})
	}
}

func TestGovernorsOfTheSameSettingsShareThePool(t *testing.T) {
	t.Parallel()
	settings := Settings{Pool: NewPool(2)}.WithDefaults() // a namespace alone gets half of the places
	if settings.Timeout != 10*time.Second {
		t.Errorf("the timeout is %s", settings.Timeout)
	}
	admit := func(name string) error {
		_, err := settings.Governors().For(Target{}).Admit(context.Background(), Call{Namespace: "team-a", Name: name})
		return err
	}
	if err := admit("first"); err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*Error](admit("second")); !ok || e.Limit != LimitNamespace {
		t.Errorf("a second call of the namespace is not held back: %v", e)
	}
}
