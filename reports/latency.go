package reports

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// Latency is how long requests of one class that were handled in one way took. On real processes,
// the machine does other things as well while the requests are timed.
type Latency struct {
	// Class says who could have served the requests. Way says who handled them: "answered" by the
	// asked server itself, "passed on" to a peer, or empty if no server has recorded them.
	Class invariant.Class `json:"class"`
	Way   invariant.Way   `json:"way,omitempty"`
	// Requests is the number of requests, whatever the answer was.
	Requests int `json:"requests"`
	// Measured is how many of them succeeded and were neither watches nor upgrades. P50Seconds and
	// P99Seconds are over the measured requests. They are 0 if there are none.
	Measured   int     `json:"measured"`
	P50Seconds Seconds `json:"p50Seconds,omitempty"`
	P99Seconds Seconds `json:"p99Seconds,omitempty"`
}

func newLatencies(facts *invariant.Facts) []Latency {
	type kind struct {
		class invariant.Class
		way   invariant.Way
	}
	took := map[kind][]time.Duration{}
	requests := map[kind]int{}
	for o, handled := range facts.Handled() {
		k := kind{handled.Class, handled.Way}
		requests[k]++
		if measured(o) {
			took[k] = append(took[k], o.End-o.Start)
		}
	}
	out := []Latency{}
	for k, n := range requests { // in any order
		l := Latency{Class: k.class, Way: k.way, Requests: n, Measured: len(took[k])}
		if all := took[k]; len(all) > 0 {
			slices.Sort(all)
			l.P50Seconds, l.P99Seconds = seconds(percentile(all, 50)), seconds(percentile(all, 99))
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Latency) int {
		return cmp.Or(cmp.Compare(order(a.Class), order(b.Class)), cmp.Compare(a.Way, b.Way))
	})
	return out
}

// measured reports whether the time that the operation took says something about the server: it
// succeeded, and is neither a watch nor an upgrade.
func measured(o *history.Operation) bool {
	whole := o.Failure == history.FailureNone && o.Status >= 200 && o.Status < http.StatusMultipleChoices
	return whole && o.Verb != "watch" && !o.AsksForUpgrade()
}

// percentile is the smallest of the sorted durations that p percent of them do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1]
}
