package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report is all that was measured.
type report struct {
	Workers     int      `json:"workers"`
	Latency     string   `json:"providerLatency"`
	Fsync       bool     `json:"fsync"`
	ProviderQPS int      `json:"providerQPS"`
	EmptyHeap   float64  `json:"emptyHeapBytes"`
	Sizes       []size   `json:"sizes"`
	Tenants     *tenants `json:"tenants,omitempty"`
	// Over are the counts that are over their targets.
	Over []string `json:"over"`
}

// save writes the figures as JSON.
func (r *report) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// line is a line of the table: a figure of each size.
type line struct {
	name, target string
	figure       func(size) string
}

func (r *report) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(r.Sizes) > 0 {
		fmt.Fprintf(table, "\nBUCKETS\t%s\ttarget\n", r.each(func(s size) string { return strconv.Itoa(s.N) }))
		for _, l := range slices.Concat(countLines, ratioLines, contextLines) {
			fmt.Fprintf(table, "%s\t%s\t%s\n", l.name, r.each(l.figure), l.target)
		}
	}
	if r.Tenants != nil {
		fmt.Fprintf(table, "\nA NAMESPACE BESIDE ANOTHER WITH\tp50, p99, ms\tp99 / alone (target <= 2)\n")
		for _, l := range r.Tenants.lines() {
			fmt.Fprintf(table, "%s\t%s\t%s\n", l[0], l[1], l[2])
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d workers, provider latency %s, fsync %t\n", r.Workers, r.Latency, r.Fsync)
	for _, s := range r.Sizes {
		fmt.Fprintf(out, "requests of the operator for %d buckets: %s\n", s.N, kinds(s.lastDrain().Requests))
		fmt.Fprintf(out, "  in the quiet time: %s\n", kinds(s.Life.Idle.Requests))
		fmt.Fprintf(out, "  at the restart: %s\n", kinds(s.Life.Restart.Requests))
		fmt.Fprintf(out, "  at the Secret's change: %s\n", kinds(s.Life.Secret.Requests))
		fmt.Fprintf(out, "  at the delete: %s\n", kinds(s.Life.Delete.Requests))
	}
	for _, over := range r.Over {
		fmt.Fprintf(out, "OVER TARGET: %s\n", over)
	}
	return nil
}

func (r *report) each(figure func(size) string) string {
	var figures []string
	for _, s := range r.Sizes {
		figures = append(figures, figure(s))
	}
	return strings.Join(figures, "\t")
}

func kinds(requests map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(requests)) {
		parts = append(parts, fmt.Sprintf("%s %d", kind, requests[kind]))
	}
	return strings.Join(parts, ", ")
}

// lastDrain stands for the drains where one is shown.
func (s size) lastDrain() drain { return s.Blocks[len(s.Blocks)-1].Operators[1] }

// worst is the greatest count of all drains by the operator, for each bucket.
func (s size) worst(of func(counts) int) float64 {
	greatest := 0
	for _, b := range s.Blocks {
		for _, d := range b.Operators {
			greatest = max(greatest, of(d.counts))
		}
	}
	return float64(greatest) / float64(s.N)
}

func total(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func perDeleted(of func(counts) int) func(size) string {
	return func(s size) string { return fmt.Sprintf("%.3f", float64(of(s.Life.Delete.counts))/float64(s.N)) }
}

func writes(c counts) int    { return c.Writes }
func events(c counts) int    { return c.Events }
func conflicts(c counts) int { return c.Conflicts }
func passes(c counts) int    { return c.Passes }
func reads(c counts) int     { return c.Reads }

func providerCalls(c counts) int { return total(c.Calls) }

func worst(of func(counts) int) func(size) string {
	return func(s size) string { return fmt.Sprintf("%.3f", s.worst(of)) }
}

func number(of func(size) int) func(size) string {
	return func(s size) string { return strconv.Itoa(of(s)) }
}

// countLines are exact on any machine.
var countLines = []line{
	{"create: writes a bucket", "4.00", worst(writes)},
	{"create: conflicts", "0", func(s size) string { return fmt.Sprintf("%.0f", s.worst(conflicts)*float64(s.N)) }},
	{"create: passes a bucket", "<= 1.2", worst(passes)},
	{"create: events a bucket", "", worst(events)},
	{"create: GETs and LISTs a bucket", "", worst(reads)},
	{"create: provider calls a bucket", "1", worst(providerCalls)},
	{"quiet: writes", "0", number(func(s size) int { return s.Life.Idle.Writes })},
	{"quiet: passes", "0", number(func(s size) int { return s.Life.Idle.Passes })},
	{"quiet: provider calls", "0", number(func(s size) int { return providerCalls(s.Life.Idle.counts) })},
	{"restart: writes", "0", number(func(s size) int { return s.Life.Restart.Writes })},
	{"restart: provider calls", "0", number(func(s size) int { return providerCalls(s.Life.Restart.counts) })},
	{"restart: passes a bucket", "", func(s size) string { return fmt.Sprintf("%.3f", float64(s.Life.Restart.Passes)/float64(s.N)) }},
	{"Secret of some changes: buckets of it", "", number(func(s size) int { return s.Life.Sharing })},
	{"Secret of some changes: passes", "the same", number(func(s size) int { return s.Life.Secret.Passes })},
	{"Secret of some changes: writes", "", number(func(s size) int { return s.Life.Secret.Writes })},
	{"Secret of some changes: provider calls", "", number(func(s size) int { return providerCalls(s.Life.Secret.counts) })},
	{"delete: writes a bucket", "2.00", perDeleted(writes)},
	{"delete: passes a bucket", "", perDeleted(passes)},
	{"delete: provider calls a bucket", "2", perDeleted(providerCalls)},
}

// ratioLines are true within 15 % (CPU) and 45 % (time).
var ratioLines = []line{
	{"blocks, of them dropped (all: none is)", "", func(s size) string { return fmt.Sprintf("%d, %d", s.Comparison.Blocks, s.Comparison.Dropped) }},
	{"rate / limit's", ">= 0.9", func(s size) string { return s.Comparison.RateOfLimit.String() }},
	{"rate / best known loop's", "", func(s size) string { return s.Comparison.RateOfBest.String() }},
	{"API server's CPU / limit's", "<= 1.10", func(s size) string { return s.Comparison.ServerOfLimit.String() }},
	{"etcd's CPU / limit's", "", func(s size) string { return s.Comparison.EtcdOfLimit.String() }},
	{"operator's CPU / limit's client's", "<= 1.7", func(s size) string { return s.Comparison.ClientOfLimit.String() }},
	{"live: p99 / limit's p99", "<= 5", s1(func(l live) string { return ratio(l.Operator.P99, l.Limit.P99) })},
	{"live: p99 beside a dead provider / without", "<= 1.5", s1(func(l live) string { return ratio(l.BesideDead.P99, l.Operator.P99) })},
}

// contextLines say more of the machine than of the operator.
var contextLines = []line{
	{"buckets a second: limit", "", func(s size) string { return fmt.Sprintf("%.0f", s.Comparison.LimitRate) }},
	{"buckets a second: operator", "", func(s size) string { return fmt.Sprintf("%.0f", s.Comparison.OperatorRate) }},
	{"buckets a second: best known loop", "", func(s size) string { return fmt.Sprintf("%.0f", s.Comparison.BestRate) }},
	{"CPU ms a bucket: API server, limit", "", func(s size) string { return fmt.Sprintf("%.2f", s.Comparison.LimitServer) }},
	{"CPU ms a bucket: API server, operator", "", func(s size) string { return fmt.Sprintf("%.2f", s.Comparison.OperatorServer) }},
	{"CPU ms a bucket: etcd, operator", "", func(s size) string { return fmt.Sprintf("%.2f", s.Comparison.OperatorEtcd) }},
	{"CPU ms a bucket: limit's client", "", func(s size) string { return fmt.Sprintf("%.2f", s.Comparison.LimitClient) }},
	{"CPU ms a bucket: operator", "", func(s size) string { return fmt.Sprintf("%.2f", s.Comparison.OperatorClient) }},
	{"live: limit's p50, p99, ms", "", s1(func(l live) string { return l.Limit.String() })},
	{"live: p50, p99, ms", "", s1(func(l live) string { return l.Operator.String() })},
	{"live: p50, p99 beside a dead provider, ms", "", s1(func(l live) string { return l.BesideDead.String() })},
	{"heap a bucket, KiB", "<= 5", func(s size) string { return fmt.Sprintf("%.1f", s.Life.HeapPerObject/1024) }},
	{"resident after the restart, MiB", "", func(s size) string { return fmt.Sprintf("%.0f", s.Life.Resident/(1<<20)) }},
	{"quiet: requests a minute", "", func(s size) string {
		return fmt.Sprintf("%.0f", float64(total(s.Life.Idle.Requests))*60/max(s.Life.Idle.Seconds, 1))
	}},
	{"quiet: CPU ms a second", "", func(s size) string { return fmt.Sprintf("%.1f", 1000*s.Life.Idle.CPU/max(s.Life.Idle.Seconds, 1)) }},
	{"restart: seconds until ready, until settled", "", func(s size) string {
		return fmt.Sprintf("%.2f, %.2f", s.Life.Restart.Ready, s.Life.Restart.Settled)
	}},
	{"restart: two bare LISTs + 1 s, for comparison", "", func(s size) string { return fmt.Sprintf("%.2f", 2*s.Life.Restart.Lists+1) }},
	{"restart: CPU s", "", func(s size) string { return fmt.Sprintf("%.2f", s.Life.Restart.CPU) }},
	{"Secret of some changes: seconds", "", func(s size) string { return fmt.Sprintf("%.2f", s.Life.Secret.Seconds) }},
	{"delete: buckets a second", "", func(s size) string { return fmt.Sprintf("%.0f", float64(s.N)/s.Life.Delete.Seconds) }},
}

// s1 is a figure of the live mode, where that was run.
func s1(figure func(live) string) func(size) string {
	return func(s size) string {
		if s.Live == nil {
			return "-"
		}
		return figure(*s.Live)
	}
}

func ratio(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max) }

func (w waits) String() string { return fmt.Sprintf("%.0f, %.0f", 1000*w.P50, 1000*w.P99) }
