package httpapi_test

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
	"avalonhosting.example/bucketoperator/internal/provider/providertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Conformance(t, func(t *testing.T) providertest.Fixture { return fixture(t, false) })
}

func TestConformanceOfAMinimalProvider(t *testing.T) {
	t.Parallel()
	providertest.Conformance(t, func(t *testing.T) providertest.Fixture { return fixture(t, true) })
}

func fixture(t *testing.T, minimal bool) providertest.Fixture {
	const activateAfter = 5 * time.Second
	clock := testingclock.NewFakeClock(time.Now())
	mock := newMock(t, mockprovider.Options{
		ActivateAfter: activateAfter, Minimal: minimal, Clock: clock,
		APIKeys: map[string]string{canary: "team-a"},
	})
	url := serve(t, mock)
	hanging := newMock(t, mockprovider.Options{})
	hanging.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Hang: true}})
	factory := newFactory(t, &httpapi.Factory{})
	return providertest.Fixture{
		Client:       open(t, factory, config(url)),
		Want:         provider.Spec{Region: "us-east-1", SizeGB: 100, Encrypted: true},
		Refused:      &provider.Spec{Region: "atlantis-1", SizeGB: 100},
		Buckets:      func() int { return len(mock.Buckets()) },
		Settle:       func() { clock.Step(activateAfter) },
		HonoursKeys:  !minimal,
		Resizes:      !minimal,
		Unauthorized: open(t, factory, with(config(url), func(c *provider.Config) { c.Credentials["apiKey"] = []byte("another") })),
		Unreachable:  open(t, factory, with(config(closedPort(t)), func(c *provider.Config) { c.Owner.Name = "unreachable" })),
		Hanging: open(t, newFactory(t, &httpapi.Factory{Egress: egress.Settings{Timeout: shortTimeout}}),
			with(config(serve(t, hanging)), func(c *provider.Config) { c.Owner.Name = "hanging" })),
	}
}
