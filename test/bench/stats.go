package main

import (
	"math"
	"slices"
)

// spread is the median of figures, and the least and the greatest of them.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(figures []float64) spread {
	if len(figures) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(figures))
	half := len(sorted) / 2
	median := sorted[half]
	if len(sorted)%2 == 0 {
		median = (sorted[half-1] + sorted[half]) / 2
	}
	return spread{Median: median, Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// percentile is the figure that the share of all are not above: 0.5 is the median.
func percentile(figures []float64, share float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
