package steady

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

var limits = Limits{Share: 0.1, Amount: 20, Samples: 30, Time: time.Minute}

// series are a value for each second.
func series(seconds int, value func(second int) float64) (all []Sample) {
	for i := range seconds {
		all = append(all, Sample{time.Duration(i) * time.Second, value(i)})
	}
	return all
}

func TestJudge(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	noise := func(of float64) float64 { return of * (chance.Float64() - 0.5) }
	peak := func(is bool) float64 {
		if is {
			return 9999
		}
		return 100
	}
	one := func(int) float64 { return 1 }
	for name, c := range map[string]struct {
		samples []Sample
		want    Outcome
		says    string
	}{
		"flat":                            {series(100, func(int) float64 { return 100 }), Steady, ""},
		"flat, at zero":                   {series(100, func(int) float64 { return 0 }), Steady, ""},
		"flat with noise":                 {series(100, func(int) float64 { return 100 + noise(20) }), Steady, ""},
		"a sawtooth":                      {series(100, func(i int) float64 { return 100 + float64(i%10) }), Steady, ""},
		"falling":                         {series(100, func(i int) float64 { return 200 - float64(i)/3 }), Steady, ""},
		"one peak":                        {series(100, func(i int) float64 { return peak(i == 50) }), Steady, ""},
		"a peak at the end":               {series(100, func(i int) float64 { return peak(i > 95) }), Steady, ""},
		"a cache that fills, and is full": {series(100, func(i int) float64 { return 100 + 5*float64(min(i, 20)) }), Steady, ""},
		"just below the limit":            {series(101, func(i int) float64 { return 100 + 0.29*float64(i) }), Steady, ""},
		"just above the limit":            {series(101, func(i int) float64 { return 100 + 0.32*float64(i) }), Grows, "the limit is 20 more"},
		"a leak":                          {series(100, func(i int) float64 { return 100 + float64(i) }), Grows, ""},
		"a leak with noise":               {series(100, func(i int) float64 { return 100 + float64(i) + noise(30) }), Grows, ""},
		"a leak that begins late":         {series(100, func(i int) float64 { return 100 + 3*float64(max(0, i-50)) }), Grows, ""},
		"a leak in steps":                 {series(100, func(i int) float64 { return 100 + 30*float64(i/20) }), Grows, ""},
		"a leak beyond its noise":         {series(100, func(i int) float64 { return 100 + 10*float64(i) + noise(200) }), Grows, ""},
		"a share of much":                 {series(100, func(i int) float64 { return 1000 + float64(i) }), Steady, ""},
		"too noisy":                       {series(100, func(int) float64 { return 100 + noise(200) }), Inconclusive, "too noisy"},
		"a leak below its noise":          {series(100, func(i int) float64 { return 100 + 0.5*float64(i) + noise(400) }), Inconclusive, "too noisy"},
		"too few":                         {series(29, func(int) float64 { return 100 }), Inconclusive, "too few: 29 of at least 30"},
		"none":                            {nil, Inconclusive, "too few: 0"},
		"too short":                       {series(60, func(int) float64 { return 100 }), Inconclusive, "too short: 59s of at least 1m0s"},
		"just long enough":                {series(61, func(int) float64 { return 100 }), Steady, ""},
		"nothing in the middle":           {append(series(30, one), Sample{2 * time.Minute, 1}), Inconclusive, "no two samples in the third"},
		"no number":                       {series(100, func(i int) float64 { return math.Sqrt(float64(7 - i)) }), Inconclusive, "after 8s is NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(c.samples, limits)
			if got.Outcome != c.want || !strings.Contains(got.Reason, c.says) || got.Reason == "" {
				t.Errorf("%s, because %s; want %s, because of %q", got.Outcome, got.Reason, c.want, c.says)
			}
			chance.Shuffle(len(c.samples), func(i, j int) { c.samples[i], c.samples[j] = c.samples[j], c.samples[i] })
			if again := Judge(c.samples, limits); again != got {
				t.Errorf("in another order: %+v, before %+v", again, got)
			}
		})
	}
}

// What a sidecar used in a soak of half an hour, every four seconds: hostile clients come and go,
// and take twice as much of it at times. That is steady, and a leak on top of it is found.
func TestJudgeARealSoak(t *testing.T) {
	content, err := os.ReadFile("testdata/soak.json")
	if err != nil {
		t.Fatal(err)
	}
	var measured map[string][]float64
	if err := json.Unmarshal(content, &measured); err != nil {
		t.Fatal(err)
	}
	for name, amount := range map[string]float64{"go_goroutines": 30, "go_memstats_next_gc_bytes": 16 << 20} {
		values := measured[name]
		if len(values) < 300 {
			t.Fatalf("%s: %d values", name, len(values))
		}
		with := func(leak float64) Verdict {
			samples := series(len(values), func(i int) float64 { return values[i] + leak*float64(i)/float64(len(values)) })
			return Judge(samples, Limits{Amount: amount, Samples: 60, Time: time.Minute})
		}
		if got := with(0); got.Outcome != Steady {
			t.Errorf("%s: %s: %s", name, got.Outcome, got.Reason)
		}
		if got := with(2 * amount); got.Outcome != Grows {
			t.Errorf("%s with a leak of %.0f: %s: %s", name, 2*amount, got.Outcome, got.Reason)
		}
	}
}
