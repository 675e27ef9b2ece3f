package egress

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// maxNamed is how many destinations, and namespaces, a scrape names at most.
	maxNamed = 20
	// maxNamedOfOne is how many destinations of one namespace, so that it cannot hide
	// those of others behind its own.
	maxNamedOfOne = 5
	// recently is for how long a destination is named after it had no place for a call.
	recently = time.Minute
)

// holdReasons are all values of the label reason.
var holdReasons = []string{
	string(LimitRate), string(LimitWindow), string(LimitNamespace), string(LimitQuiet), "circuit", "fence",
}

func holdReason(e *Error) string {
	switch e.Class {
	case HeldBack:
		return string(e.Limit)
	case Fenced:
		return "fence"
	case Unreachable, AddressRefused:
	}
	return "circuit"
}

// collector tells of the calls of a Pool, and of the destinations in trouble.
type collector struct {
	pool                                                *Pool
	inFlight, ofNamespace, held, oldest, circuit, waits *prometheus.Desc
}

// NewCollector makes the metrics of a Pool and of its Governors. At each scrape
// they name at most 20 destinations, 5 of a namespace: those that are slow, cannot be
// reached, or had no place for a call within the last minute; and at most 20 namespaces: those with
// the most calls in flight. So names do not add up to more series than a scraper
// can keep, however many there are.
func NewCollector(pool *Pool) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("bucketoperator_egress_"+name, help, labels, nil)
	}
	return &collector{
		pool:        pool,
		inFlight:    desc("in_flight_calls", "How many calls to the outside are in flight."),
		ofNamespace: desc("namespace_in_flight_calls", "How many calls are in flight for a namespace; of the 20 with the most.", "namespace"),
		held: desc("held_back_calls_total",
			"How many calls were not made for now: the rate, window or namespace's share was used up, the destination wants quiet, the circuit is open, or another may lead.", "reason"),
		oldest:  desc("oldest_call_seconds", "How long the oldest call to a destination has been in flight; of the 20 most in trouble.", "namespace", "name"),
		circuit: desc("circuit_open", "1 while calls to a destination are stopped, as it was not reached; of the 20 most in trouble.", "namespace", "name"),
		waits:   desc("waiting_calls", "How many calls to a destination were told to come back; of the 20 most in trouble.", "namespace", "name"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.inFlight, c.ofNamespace, c.held, c.oldest, c.circuit, c.waits} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	p := c.pool.snapshot()
	gauge(c.inFlight, float64(p.inFlight))
	for _, reason := range holdReasons {
		metrics <- prometheus.MustNewConstMetric(c.held, prometheus.CounterValue, float64(p.held[reason]), reason)
	}
	for _, n := range p.busiest {
		gauge(c.ofNamespace, float64(n.calls), n.namespace)
	}
	for _, d := range troubled(p.governors) {
		gauge(c.oldest, d.oldest.Seconds(), d.Namespace, d.Name)
		gauge(c.circuit, d.circuit, d.Namespace, d.Name)
		gauge(c.waits, float64(d.waiting), d.Namespace, d.Name)
	}
}

// poolState is a Pool as it is at a scrape.
type poolState struct {
	inFlight  int
	held      map[string]int
	busiest   []namespaceCalls
	governors []*Governor
}

type namespaceCalls struct {
	namespace string
	calls     int
}

func (p *Pool) snapshot() poolState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := poolState{inFlight: p.shares.taken, held: maps.Clone(p.held)}
	for namespace, calls := range p.shares.by {
		s.busiest = append(s.busiest, namespaceCalls{namespace, calls})
	}
	slices.SortFunc(s.busiest, func(a, b namespaceCalls) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.namespace, b.namespace))
	})
	s.busiest = s.busiest[:min(maxNamed, len(s.busiest))]
	for g := range p.governors {
		s.governors = append(s.governors, g)
	}
	return s
}

// trouble is a destination that a scrape may name.
type trouble struct {
	Destination
	oldest  time.Duration
	circuit float64
	waiting int
}

// troubled are the destinations most in trouble. Two kinds of configuration may
// have one of the same name: it is told of once, at its worst.
func troubled(governors []*Governor) []trouble {
	worst := map[Destination]trouble{}
	for _, g := range governors {
		t, ok := g.trouble()
		if !ok {
			continue
		}
		known := worst[t.Destination]
		t.oldest, t.circuit, t.waiting = max(t.oldest, known.oldest), max(t.circuit, known.circuit), t.waiting+known.waiting
		worst[t.Destination] = t
	}
	all := make([]trouble, 0, len(worst))
	for _, t := range worst {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b trouble) int {
		return cmp.Or(cmp.Compare(b.oldest, a.oldest), cmp.Compare(b.circuit, a.circuit), cmp.Compare(b.waiting, a.waiting),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	named := map[string]int{}
	all = slices.DeleteFunc(all, func(t trouble) bool {
		named[t.Namespace]++
		return named[t.Namespace] > maxNamedOfOne
	})
	return all[:min(maxNamed, len(all))]
}

// trouble is how the destination is, and whether it is in trouble.
func (g *Governor) trouble() (trouble, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	t := trouble{Destination: g.destination, oldest: now.Sub(g.oldest("", now)), waiting: len(g.queue.tickets)}
	if g.circuitOpen() {
		t.circuit = 1
	}
	heldLately := !g.heldAt.IsZero() && now.Sub(g.heldAt) < recently
	return t, t.oldest >= slowCall || t.circuit > 0 || heldLately
}
