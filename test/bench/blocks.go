package main

import (
	"context"
	"math"
)

// maxLimitRatio is how far the two limits of a block may be apart. When they
// are further, something else was going on, and the block says nothing of times.
const maxLimitRatio = 1.4

// block is what is compared: limit, operator, operator, limit, so that a machine
// that slows down, or a server that fills up, hurts both alike. The best known
// loop comes last.
type block struct {
	Limits    [2]drain `json:"limits"`
	Operators [2]drain `json:"operators"`
	Best      drain    `json:"best"`
	Dropped   bool     `json:"dropped"`
}

func (w *world) block(ctx context.Context, n int) (b block, err error) {
	if b.Limits[0], err = w.drainByLimit(ctx, n, loadSame); err != nil {
		return b, err
	}
	for i := range b.Operators {
		if b.Operators[i], err = w.drainByOperator(ctx, n); err != nil {
			return b, err
		}
	}
	if b.Limits[1], err = w.drainByLimit(ctx, n, loadSame); err != nil {
		return b, err
	}
	if b.Best, err = w.drainByLimit(ctx, n, loadBest); err != nil {
		return b, err
	}
	apart := b.Limits[0].Seconds / b.Limits[1].Seconds
	b.Dropped = math.Max(apart, 1/apart) > maxLimitRatio
	return b, nil
}

func sum(drains [2]drain, of func(drain) float64) float64 { return of(drains[0]) + of(drains[1]) }

func seconds(d drain) float64 { return d.Seconds }
func server(d drain) float64  { return d.Server }
func etcd(d drain) float64    { return d.Etcd }
func cpu(d drain) float64     { return d.Client }

// comparison is what the blocks of a size say.
type comparison struct {
	Blocks  int `json:"blocks"`
	Dropped int `json:"dropped"`
	// Rates are how fast the operator was, of the limit's and the best loop's.
	RateOfLimit spread `json:"rateOfLimit"`
	RateOfBest  spread `json:"rateOfBest"`
	// CPU times are how many times the limit's.
	ServerOfLimit spread `json:"serverCPUOfLimit"`
	EtcdOfLimit   spread `json:"etcdCPUOfLimit"`
	ClientOfLimit spread `json:"clientCPUOfLimit"`
	// For context: buckets a second, and CPU time in milliseconds a bucket.
	LimitRate      float64 `json:"limitRate"`
	OperatorRate   float64 `json:"operatorRate"`
	BestRate       float64 `json:"bestRate"`
	LimitServer    float64 `json:"limitServerCPUMillis"`
	OperatorServer float64 `json:"operatorServerCPUMillis"`
	LimitClient    float64 `json:"limitClientCPUMillis"`
	OperatorClient float64 `json:"operatorClientCPUMillis"`
	OperatorEtcd   float64 `json:"operatorEtcdCPUMillis"`
}

func compare(n int, all []block) comparison {
	c := comparison{Blocks: len(all)}
	kept := make([]block, 0, len(all))
	for _, b := range all {
		if b.Dropped {
			c.Dropped++
			continue
		}
		kept = append(kept, b)
	}
	if len(kept) == 0 { // better than nothing; the table tells
		kept = all
	}
	over := func(figure func(block) float64) spread {
		var figures []float64
		for _, b := range kept {
			figures = append(figures, figure(b))
		}
		return spreadOf(figures)
	}
	times := func(of func(drain) float64) spread {
		return over(func(b block) float64 { return sum(b.Operators, of) / sum(b.Limits, of) })
	}
	c.RateOfLimit = over(func(b block) float64 { return sum(b.Limits, seconds) / sum(b.Operators, seconds) })
	c.RateOfBest = over(func(b block) float64 { return 2 * b.Best.Seconds / sum(b.Operators, seconds) })
	c.ServerOfLimit, c.EtcdOfLimit, c.ClientOfLimit = times(server), times(etcd), times(cpu)

	rate := func(of func(block) float64) float64 {
		return over(func(b block) float64 { return float64(n) / of(b) }).Median
	}
	millis := func(pick func(block) [2]drain, of func(drain) float64) float64 {
		return over(func(b block) float64 { return 1000 * sum(pick(b), of) / 2 / float64(n) }).Median
	}
	limits := func(b block) [2]drain { return b.Limits }
	operators := func(b block) [2]drain { return b.Operators }
	c.LimitRate = rate(func(b block) float64 { return sum(b.Limits, seconds) / 2 })
	c.OperatorRate = rate(func(b block) float64 { return sum(b.Operators, seconds) / 2 })
	c.BestRate = rate(func(b block) float64 { return b.Best.Seconds })
	c.LimitServer, c.OperatorServer = millis(limits, server), millis(operators, server)
	c.LimitClient, c.OperatorClient = millis(limits, cpu), millis(operators, cpu)
	c.OperatorEtcd = millis(operators, etcd)
	return c
}
