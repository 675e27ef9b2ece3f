package egress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsNameTheDestinationsInTrouble(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	pool := NewPool(0)
	governors := &Governors{Clock: s.clock, Pool: pool}
	to := func(namespace, name string, limits Limits) *Governor {
		return governors.For(Target{Destination: Destination{namespace, name}, Limits: limits})
	}
	admitted := func(g *Governor, namespace string) func(Outcome) {
		t.Helper()
		done, err := g.Admit(t.Context(), Call{namespace, "call"})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	admitted(to("evil", "slow", Limits{}), "evil")
	dead := to("evil", "dead", Limits{})
	for range failuresToOpen {
		admitted(dead, "evil")(unreachable("down"))
	}
	s.clock.SetTime(epoch.Add(3 * time.Second / 2))
	admitted(to("good", "quick", Limits{}), "good")
	gone := to("gone", "gone", Limits{})
	admitted(gone, "gone")
	governors.Forget(Destination{"gone", "gone"})
	shared := to("", "default-endpoint", Limits{QPS: 1, Burst: 1})
	admitted(shared, "good")(Answered())
	if _, err := shared.Admit(t.Context(), Call{"good", "another"}); refusal(t, err).Limit != LimitRate {
		t.Fatal(err)
	}
	s.clock.SetTime(epoch.Add(2 * time.Second))

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(pool))
	want := `
# HELP bucketoperator_egress_circuit_open 1 while calls to a destination are stopped, as it was not reached; of the 20 most in trouble.
# TYPE bucketoperator_egress_circuit_open gauge
bucketoperator_egress_circuit_open{name="dead",namespace="evil"} 1
bucketoperator_egress_circuit_open{name="slow",namespace="evil"} 0
# HELP bucketoperator_egress_held_back_calls_total How many calls were not made for now: the rate, window or namespace's share was used up, the destination wants quiet, the circuit is open, or another may lead.
# TYPE bucketoperator_egress_held_back_calls_total counter
bucketoperator_egress_held_back_calls_total{reason="circuit"} 0
bucketoperator_egress_held_back_calls_total{reason="fence"} 0
bucketoperator_egress_held_back_calls_total{reason="namespace"} 0
bucketoperator_egress_held_back_calls_total{reason="quiet"} 0
bucketoperator_egress_held_back_calls_total{reason="rate"} 1
bucketoperator_egress_held_back_calls_total{reason="window"} 0
# HELP bucketoperator_egress_in_flight_calls How many calls to the outside are in flight.
# TYPE bucketoperator_egress_in_flight_calls gauge
bucketoperator_egress_in_flight_calls 3
# HELP bucketoperator_egress_namespace_in_flight_calls How many calls are in flight for a namespace; of the 20 with the most.
# TYPE bucketoperator_egress_namespace_in_flight_calls gauge
bucketoperator_egress_namespace_in_flight_calls{namespace="evil"} 1
bucketoperator_egress_namespace_in_flight_calls{namespace="gone"} 1
bucketoperator_egress_namespace_in_flight_calls{namespace="good"} 1
# HELP bucketoperator_egress_oldest_call_seconds How long the oldest call to a destination has been in flight; of the 20 most in trouble.
# TYPE bucketoperator_egress_oldest_call_seconds gauge
bucketoperator_egress_oldest_call_seconds{name="dead",namespace="evil"} 0
bucketoperator_egress_oldest_call_seconds{name="slow",namespace="evil"} 2
# HELP bucketoperator_egress_waiting_calls How many calls to a destination were told to come back; of the 20 most in trouble.
# TYPE bucketoperator_egress_waiting_calls gauge
bucketoperator_egress_waiting_calls{name="dead",namespace="evil"} 0
bucketoperator_egress_waiting_calls{name="slow",namespace="evil"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestMetricsStayFewHoweverManyDestinationsThereAre(t *testing.T) {
	t.Parallel()
	s := newSimulation(t)
	pool := NewPool(10_000)
	// Two kinds of configuration, with the same names.
	kinds := []*Governors{{Clock: s.clock, Pool: pool}, {Clock: s.clock, Pool: pool}}
	for _, governors := range kinds {
		for i := range 100 {
			for _, namespace := range []string{"evil", fmt.Sprint("tenant-", i)} {
				g := governors.For(Target{Destination: Destination{namespace, fmt.Sprint(i)}})
				if _, err := g.Admit(t.Context(), Call{namespace, "call"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s.clock.SetTime(epoch.Add(time.Minute))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(pool))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if n := len(family.GetMetric()); n > maxNamed {
			t.Errorf("%s has %d series", family.GetName(), n)
		}
		evil := 0
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "namespace" && label.GetValue() == "evil" {
					evil++
				}
			}
		}
		if evil > maxNamedOfOne {
			t.Errorf("%s names %d of one namespace", family.GetName(), evil)
		}
	}
}
