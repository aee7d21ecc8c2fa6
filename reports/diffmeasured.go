package reports

import (
	"fmt"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

// RateDiff says how requests of one class were answered in two runs.
type RateDiff struct {
	Class string
	A, B  Shares
}

// Shares is a number of requests, divided by the kind of their answers.
type Shares struct {
	// Requests is the number of requests. PassedOn is how many of them were passed on to a peer.
	Requests, PassedOn int
	// OK counts the answers 2xx and 304. NotFound counts the 404s for a resource that does not
	// exist, and NoObject those for an object that does not exist. Unavailable counts the 503s, and
	// Other the rest.
	OK, NotFound, NoObject, Unavailable, Other int
}

// Share is a number as a part of all requests: "98.1 %". It is "–" if there were no requests.
func (s Shares) Share(n int) string {
	if s.Requests == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(s.Requests))
}

// words are the cells of the shares.
func (s Shares) words() []string {
	return []string{grouped(s.Requests), grouped(s.PassedOn), s.Share(s.OK), s.Share(s.NoObject), s.Share(s.NotFound), s.Share(s.Unavailable),
		s.Share(s.Other)}
}

func sharesOf(r RunReport, class invariant.Class) (s Shares) {
	for _, c := range r.Counts {
		if c.Class != class {
			continue
		}
		s.Requests += c.Count
		switch {
		case c.Status >= 200 && c.Status < 300 || c.Status == 304:
			s.OK += c.Count
		case c.Status == 404 && c.Detail == string(history.MissingObject):
			s.NoObject += c.Count
		case c.Status == 404:
			s.NotFound += c.Count
		case c.Status == 503:
			s.Unavailable += c.Count
		default:
			s.Other += c.Count
		}
	}
	for _, l := range r.Latencies {
		if l.Class == class && l.Way == invariant.WayPassedOn {
			s.PassedOn += l.Requests
		}
	}
	return s
}

func compareRates(a, b RunReport) (diffs []RateDiff) {
	for _, class := range classes {
		d := RateDiff{class.title, sharesOf(a, class.class), sharesOf(b, class.class)}
		if d.A.Requests+d.B.Requests > 0 {
			diffs = append(diffs, d)
		}
	}
	return diffs
}

// LatencyDiff says how long requests of one class that were handled in one way took in two runs.
type LatencyDiff struct {
	Class string
	Way   string // "answered by the asked server", "passed on to a peer"
	// A and B have no measured requests if the run had none.
	A, B Latency
}

// String writes the latency in short: "2.1 / 9.7 ms", for p50 and p99. It is "–" if nothing was
// measured.
func (l Latency) String() string {
	if l.Measured == 0 {
		return "–"
	}
	return lasting(l.P50Seconds) + " / " + lasting(l.P99Seconds)
}

var wayWords = map[invariant.Way]string{invariant.WayAnswered: "answered by the asked server", invariant.WayPassedOn: "passed on to a peer"}

func compareLatencies(a, b RunReport) (diffs []LatencyDiff) {
	of := func(r RunReport, class invariant.Class, way invariant.Way) Latency {
		i := slices.IndexFunc(r.Latencies, func(l Latency) bool { return l.Class == class && l.Way == way })
		if i < 0 {
			return Latency{}
		}
		return r.Latencies[i]
	}
	for _, class := range classes {
		for _, way := range []invariant.Way{invariant.WayAnswered, invariant.WayPassedOn} {
			d := LatencyDiff{class.title, wayWords[way], of(a, class.class, way), of(b, class.class, way)}
			if d.A.Measured+d.B.Measured > 0 {
				diffs = append(diffs, d)
			}
		}
	}
	return diffs
}

// DiscoveryDiff is what the last merged discovery of one run listed and that of the other did not.
// A resource that only some servers of a run listed does not count as listed in that run.
type DiscoveryDiff struct {
	OnlyA, OnlyB []string
}

func compareDiscovery(a, b RunReport) *DiscoveryDiff {
	if a.Discovery == nil || b.Discovery == nil {
		return nil
	}
	without := func(x, y []string) (only []string) {
		for _, name := range x {
			if !slices.Contains(y, name) {
				only = append(only, name)
			}
		}
		return only
	}
	d := &DiscoveryDiff{without(a.Discovery.Everywhere, b.Discovery.Everywhere), without(b.Discovery.Everywhere, a.Discovery.Everywhere)}
	if len(d.OnlyA)+len(d.OnlyB) == 0 {
		return nil
	}
	return d
}
