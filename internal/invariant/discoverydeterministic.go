package invariant

import (
	"cmp"
	"fmt"

	"github.com/skewproof/skewproof/internal/history"
)

var discoveryDeterministic = Invariant{
	Name:    "DiscoveryDeterministic",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "In steady state, every apiserver answers discovery with the same bytes and the same ETag, " +
		"also after restarts in another order.",
	Source: "KEP-4020, Goals: discovery reports the same set of resources whichever apiserver is asked (at /api except for " +
		"subresources: Summary, note 1). Equal bytes, order and ETag are more than that: k8s.io/apiserver, " +
		"pkg/endpoints/discovery/aggregated/peer_aggregated_handler.go, intends them (mergeResources: \"to ensure a deterministic result\", " +
		"mergeResourceCapabilities: \"Sort for deterministic ETag\"), and clients cache by ETag",
	judge:    judgeDeterministic,
	pressure: []pressure{mergedDocuments},
}

// representation is the part of a response that must be equal on all servers.
type representation struct{ hash, etag string }

func representationOf(op *history.Operation) representation {
	return representation{op.Document, op.ETag}
}

// sighting is one response with a discovery document. It lies in a steady window or in none.
type sighting struct {
	*observation
	steady *steadyWindow
}

func judgeDeterministic(f *Facts) *tally {
	t := newTimedTally(f)
	// Responses are compared across the steady windows in which the servers serve the same. If the
	// truth is unknown, only the responses of one window are compared with each other.
	type pool struct{ truth, path string }
	var order []pool
	pools := map[pool][]sighting{}
	type place struct {
		steady *steadyWindow
		path   string
	}
	asked, compared := map[place]string{}, map[place]bool{}
	for _, o := range f.observations {
		if _, ok := f.merged(o.op); !ok || !o.ready {
			continue
		}
		q := f.steadyAt(o.window)
		if q == nil {
			continue
		}
		p := pool{cmp.Or(q.truth.sum, "window at "+clock(q.from)), o.op.Path}
		if pools[p] == nil {
			order = append(order, p)
		}
		pools[p] = append(pools[p], sighting{o, q})
		at := place{q, o.op.Path}
		if first, ok := asked[at]; !ok {
			asked[at] = o.op.Server
		} else if first != o.op.Server {
			compared[at] = true
		}
	}
	for _, p := range order {
		t.comparePool(pools[p])
	}
	if len(compared) == 0 {
		t.doubt("in no steady window did two apiservers answer discovery")
	}
	t.fact("steady windows", len(f.steady))
	t.fact("steady windows and paths with documents of two servers", len(compared))
	return t
}

// comparePool compares every sighting with the most frequent representation. As evidence it prefers
// a counterpart from the same window.
func (t *tally) comparePool(pool []sighting) {
	f, usual := t.facts, mostFrequent(pool)
	for _, s := range pool {
		if f.alike(s.op.Path, representationOf(s.op), usual) {
			t.rule(s.observation, rulingRight)
			continue
		}
		t.rule(s.observation, rulingWrong)
		other := pool[0]
		for _, c := range pool {
			if representationOf(c.op) != usual {
				continue
			}
			other = c
			if c.steady == s.steady {
				break
			}
		}
		d, cause := f.compareAnswers(s.op, other.op)
		when := "at the same time"
		if other.steady != s.steady {
			when = "in another steady window, in which the same was served"
		}
		what := s.op.Path + ": " + cause + " " + when
		b := t.breach(s.observation, situation{}, what, what)
		if other.steady != s.steady { // the obstacle may have existed at the time of the other response
			b.Before = f.anyObstacle(window{beginning, max(s.op.End, other.op.End)})
		}
		b.Setup = cmp.Or(b.Setup, f.setup(other.observation, nil)) // either document may be the wrong one
		b.Extension = cmp.Or(f.extensionBetween(s.observation, other.op.Document), f.extensionBetween(other.observation, s.op.Document))
		t.violation(b, func() Evidence {
			e := f.show(s.observation, situation{}, "")
			e.Operations = append(e.Operations, *other.op)
			e.Difference = d
			e.Sentence = fmt.Sprintf("%s answered %s at %s differently from %s at %s: %s", s.op.Server, s.op.Path, clock(s.op.Start),
				other.op.Server, clock(other.op.Start), cmp.Or(d.summary(), cause)+".")
			return e
		})
	}
}

// mostFrequent is the most frequent representation. If several are equally frequent, it is the
// first.
func mostFrequent(pool []sighting) representation {
	count := map[representation]int{}
	for _, s := range pool {
		count[representationOf(s.op)]++
	}
	best := representationOf(pool[0].op)
	for _, s := range pool {
		if r := representationOf(s.op); count[r] > count[best] {
			best = r
		}
	}
	return best
}

// compareAnswers says how two responses that should be equal differ.
func (f *Facts) compareAnswers(a, b *history.Operation) (*Difference, string) {
	d := f.compareDocuments(Difference{
		Left: fmt.Sprintf("%s at %s", a.Server, clock(a.Start)), Right: fmt.Sprintf("%s at %s", b.Server, clock(b.Start)),
		LeftHash: a.Document, RightHash: b.Document, LeftETag: a.ETag, RightETag: b.ETag,
	}, f.documents[a.Document], f.documents[b.Document])
	switch {
	case a.Document == b.Document:
		return d, "same bytes, other ETag"
	case a.ETag == b.ETag && a.ETag != "":
		return d, "same ETag, other bytes"
	case f.documents[a.Document] == nil || f.documents[b.Document] == nil:
		return d, "other bytes, which could not be parsed"
	case d.OrderOnly:
		return d, "same resources in another order"
	case d.OnlyLeftTotal+d.OnlyRightTotal > 0:
		return d, "other resources"
	default:
		return d, "same resources, other bytes"
	}
}
