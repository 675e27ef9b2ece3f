package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpreadIsTheMedianWithTheExtremes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		figures []float64
		want    spread
	}{
		"none": {},
		"one":  {[]float64{3}, spread{Median: 3, Min: 3, Max: 3}},
		"odd":  {[]float64{9, 1, 2}, spread{Median: 2, Min: 1, Max: 9}},
		"even": {[]float64{4, 1, 2, 9}, spread{Median: 3, Min: 1, Max: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, spreadOf(test.figures)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPercentileIsAFigureThatTheShareDoesNotExceed(t *testing.T) {
	t.Parallel()
	figures := make([]float64, 0, 200)
	for i := range 200 {
		figures = append(figures, float64(200-i))
	}
	got := []float64{percentile(figures, 0.5), percentile(figures, 0.99), percentile(figures, 1), percentile(figures[:1], 0.5), percentile(nil, 0.5)}
	if diff := cmp.Diff([]float64{100, 198, 200, 200, 0}, got); diff != "" {
		t.Error(diff)
	}
}
