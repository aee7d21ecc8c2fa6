// Package steady judges whether the resources that a process uses, such as goroutines, grow while
// its load stays the same.
package steady

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Sample is a measurement.
type Sample struct {
	At    time.Duration `json:"at"` // since the same moment for all samples
	Value float64       `json:"value"`
}

// Limits define growth. All fields must be set, except that one of Share and Amount is enough.
type Limits struct {
	// Share and Amount limit the growth from the first third of the time to the last third: a share
	// of the first level, or an amount. The greater limit counts.
	Share, Amount float64
	// Samples and Time are the minimum for a verdict.
	Samples int
	Time    time.Duration
}

// Outcome is the outcome of a verdict.
type Outcome string

// The outcomes.
const (
	Steady       Outcome = "steady"
	Grows        Outcome = "grows"
	Inconclusive Outcome = "inconclusive"
)

// Verdict is the result of the judgement.
type Verdict struct {
	Outcome Outcome
	// Reason says why it is inconclusive, or what was seen.
	Reason string
}

// Judge divides the time into three thirds and compares their levels. The value grows if the last
// third is higher than the first by more than the limit, and still rises at the end. A value that
// rises once and then stays is a cache that has filled. If the levels of the last two thirds are
// less exact than the limit, Judge cannot see a growth of that size, and finds only a greater one.
// The order of the samples does not matter.
//
// A level is a Winsorized mean: the greatest and the least values are cut off at quantiles, so that
// a peak does not count. Its error is computed from batch means, because consecutive samples are
// not independent, but batches of many samples nearly are.
func Judge(samples []Sample, l Limits) Verdict {
	samples = slices.SortedFunc(slices.Values(samples), func(a, b Sample) int { return cmp.Compare(a.At, b.At) })
	if len(samples) < max(3, l.Samples) {
		return Verdict{Inconclusive, fmt.Sprintf("too few: %d of at least %d samples", len(samples), max(3, l.Samples))}
	}
	begin := samples[0].At
	whole := samples[len(samples)-1].At - begin
	if whole < l.Time || whole <= 0 {
		return Verdict{Inconclusive, fmt.Sprintf("too short: %s of at least %s", whole, l.Time)}
	}
	var thirds [3][]float64
	for _, s := range samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			return Verdict{Inconclusive, fmt.Sprintf("the value after %s is %v", s.At-begin, s.Value)}
		}
		i := min(2, int(3*(s.At-begin)/whole))
		thirds[i] = append(thirds[i], s.Value)
	}
	var levels [3]float64
	noise := 0.0
	for i, third := range thirds {
		if len(third) < 2 {
			return Verdict{Inconclusive, fmt.Sprintf("no two samples in the third of the time that begins after %s", time.Duration(i)*whole/3)}
		}
		level, doubt := mean(third)
		levels[i] = level
		if i > 0 { // the first may rise to where the others stay
			noise = max(noise, 2*math.Sqrt2*doubt) // of a difference, at about 95 %
		}
	}
	limit := max(l.Amount, l.Share*levels[0])
	seen := fmt.Sprintf("%s, %s, %s in the thirds of %s; the limit is %s more, and differences are known to %s",
		number(levels[0]), number(levels[1]), number(levels[2]), whole.Round(time.Second), number(limit), number(noise))
	switch growth := levels[2] - levels[0]; {
	case growth > max(limit, noise) && levels[2]-levels[1] > growth/4:
		return Verdict{Grows, seen}
	case noise > limit:
		return Verdict{Inconclusive, "too noisy: " + seen}
	default:
		return Verdict{Steady, seen}
	}
}

// batches is the number of parts of a third, if it has enough samples.
const batches = 8

// mean returns the Winsorized mean of values in the order of time, and its standard error.
func mean(values []float64) (level, doubt float64) {
	sorted := slices.Sorted(slices.Values(values))
	low, high := quantile(sorted, 0.15), quantile(sorted, 0.85)
	parts := min(batches, len(values))
	means := make([]float64, parts)
	for i := range parts {
		part := values[i*len(values)/parts : (i+1)*len(values)/parts]
		for _, v := range part {
			means[i] += min(max(v, low), high) / float64(len(part))
		}
		level += means[i] / float64(parts)
	}
	for _, m := range means {
		doubt += (m - level) * (m - level)
	}
	return level, math.Sqrt(doubt / float64(parts-1) / float64(parts))
}

// Median returns the median value. It is NaN without samples.
func Median(samples []Sample) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	var values []float64
	for _, s := range samples {
		values = append(values, s.Value)
	}
	slices.Sort(values)
	return quantile(values, 0.5)
}

// quantile returns a quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func number(v float64) string {
	if math.Abs(v) >= 1<<20 {
		return fmt.Sprintf("%.1f Mi", v/(1<<20))
	}
	return fmt.Sprintf("%.4g", v)
}
