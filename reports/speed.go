package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/invariant"
)

// Speed is how long the requests of one slice of time took that were handled in one way. Only
// requests count that succeeded and are neither watches nor upgrades.
type Speed struct {
	// StartSeconds is the beginning of the slice, which is [Timeline.BucketSeconds] long.
	StartSeconds Seconds `json:"startSeconds"`
	// Way is as in [Latency].
	Way invariant.Way `json:"way,omitempty"`
	// Measured is the number of requests. P50Seconds and P99Seconds are over them.
	Measured   int     `json:"measured"`
	P50Seconds Seconds `json:"p50Seconds"`
	P99Seconds Seconds `json:"p99Seconds"`
	// Slowest is the slowest request of each class of [ClassRow].
	Slowest []Slowest `json:"slowest,omitempty"`
}

// Slowest is how long the slowest request of a class took.
type Slowest struct {
	// Class is the class. Seconds is how long its slowest request took.
	Class   string  `json:"class"`
	Seconds Seconds `json:"seconds"`
}

// speeds measures the speed of every server over time.
func speeds(facts *invariant.Facts, width time.Duration) map[string][]Speed {
	type part struct {
		server string
		slice  int64
		way    invariant.Way
	}
	took := map[part][]time.Duration{}
	slowest := map[part]map[string]time.Duration{}
	for o, handled := range facts.Handled() {
		if !measured(o) {
			continue
		}
		p := part{o.Server, int64(o.End / width), handled.Way}
		took[p] = append(took[p], o.End-o.Start)
		if slowest[p] == nil {
			slowest[p] = map[string]time.Duration{}
		}
		class := rowClass(o, handled.Mechanism)
		slowest[p][class] = max(slowest[p][class], o.End-o.Start)
	}
	out := map[string][]Speed{}
	for p, all := range took {
		slices.Sort(all)
		s := Speed{
			StartSeconds: seconds(time.Duration(p.slice) * width), Way: p.way, Measured: len(all),
			P50Seconds: seconds(percentile(all, 50)), P99Seconds: seconds(percentile(all, 99)),
		}
		for _, class := range rowClasses {
			if d, ok := slowest[p][class]; ok {
				s.Slowest = append(s.Slowest, Slowest{class, seconds(d)})
			}
		}
		out[p.server] = append(out[p.server], s)
	}
	for _, all := range out {
		slices.SortFunc(all, func(a, b Speed) int {
			return cmp.Or(cmp.Compare(a.StartSeconds, b.StartSeconds), cmp.Compare(a.Way, b.Way))
		})
	}
	return out
}

// errorShare is the part of the answers that were 5xx, wrong, or missing.
func (b Bucket) errorShare() float64 {
	if b.Total() == 0 {
		return 0
	}
	return float64(b.Wrong+b.Unavailable+b.ServerError+b.NoResponse) / float64(b.Total())
}
