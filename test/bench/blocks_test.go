package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func blockOf(limit, operator float64) block {
	limits := drain{Seconds: limit, Server: 4, Etcd: 1, Client: 1}
	operators := drain{Seconds: operator, Server: 6, Etcd: 1, Client: 2}
	return block{Limits: [2]drain{limits, limits}, Operators: [2]drain{operators, operators}, Best: drain{Seconds: limit / 2}}
}

func TestDroppedBlocksDoNotCount(t *testing.T) {
	t.Parallel()
	dropped := blockOf(1, 100)
	dropped.Dropped = true
	got := compare(1000, []block{blockOf(10, 12.5), dropped, blockOf(10, 20), blockOf(10, 10)})
	want := comparison{
		Blocks: 4, Dropped: 1,
		RateOfLimit: spread{0.8, 0.5, 1}, RateOfBest: spread{0.4, 0.25, 0.5},
		ServerOfLimit: spread{1.5, 1.5, 1.5}, EtcdOfLimit: spread{1, 1, 1}, ClientOfLimit: spread{2, 2, 2},
		LimitRate: 100, OperatorRate: 80, BestRate: 200,
		LimitServer: 4, OperatorServer: 6, LimitClient: 1, OperatorClient: 2, OperatorEtcd: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyCountsOverTheirTargetFail(t *testing.T) {
	t.Parallel()
	slow := blockOf(1, 100)
	slow.Operators[0].counts = counts{Writes: 400, Passes: 120, Calls: map[string]int{"Create": 100}}
	good := size{N: 100, Blocks: []block{slow}, Life: life{Sharing: 10, Secret: drain{counts: counts{Passes: 10}}}}
	r := report{Sizes: []size{good}}
	r.judge()
	if len(r.Over) != 0 {
		t.Errorf("slow, but no count is over its target: %q", r.Over)
	}

	bad := good
	bad.Life.Secret.Passes = 11
	bad.Life.Restart.Calls = map[string]int{"Get": 1}
	r = report{Sizes: []size{bad}}
	r.judge()
	if len(r.Over) != 2 {
		t.Errorf("over their targets: %q, want the Secret's passes and the restart's calls", r.Over)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	quick, err := parseFlags([]string{"-quick"}, nil)
	if err != nil || quick.pairs != 2 || len(quick.sizes) != 1 {
		t.Errorf("-quick: %+v, %v", quick, err)
	}
	for _, args := range [][]string{{"-n", "0"}, {"-n", "1,x"}, {"-workers", "0"}, {"-latency", "-1s"}, {"-bogus"}, {"now"}} {
		if _, err := parseFlags(args, nil); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}
