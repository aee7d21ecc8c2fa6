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
	Sentence: "While nothing changes, every apiserver answers discovery with the same bytes and the same ETag, " +
		"also after restarts in another order.",
	Source: "KEP-4020, Goals: discovery reports the same set of resources whichever apiserver is asked (at /api but for subresources: Summary, note 1). That bytes, order " +
		"and ETag are the same goes beyond that: k8s.io/apiserver, pkg/endpoints/discovery/aggregated/peer_aggregated_handler.go, means it so (mergeResources: " +
		"\"to ensure a deterministic result\", mergeResourceCapabilities: \"Sort for deterministic ETag\"), and clients cache by ETag",
	judge: judgeDeterministic,
}

// edition is what has to be equal.
type edition struct{ hash, etag string }

func editionOf(op *history.Operation) edition { return edition{op.Document, op.ETag} }

// sighting is one discovery operation in a quiet window.
type sighting struct {
	*observation
	quiet *quietWindow
}

func judgeDeterministic(f *Facts) *tally {
	t := f.timely()
	type pool struct{ truth, path string }
	var order []pool
	pools := map[pool][]sighting{}
	type place struct {
		quiet *quietWindow
		path  string
	}
	asked := map[place]map[string]bool{}
	for _, o := range f.observations {
		if _, ok := f.merged(o.op); !ok || !o.ready {
			continue
		}
		q := f.quietAt(o.window)
		if q == nil {
			continue
		}
		// Windows in which the same is served belong together. Of an unknown truth each is alone.
		p := pool{cmp.Or(q.truth.sum, "window at "+clock(q.from)), o.op.Path}
		if pools[p] == nil {
			order = append(order, p)
		}
		pools[p] = append(pools[p], sighting{o, q})
		at := place{q, o.op.Path}
		if asked[at] == nil {
			asked[at] = map[string]bool{}
		}
		asked[at][o.op.Server] = true
	}
	compared := 0
	for _, servers := range asked {
		if len(servers) > 1 {
			compared++
		}
	}
	for _, p := range order {
		f.comparePool(t, pools[p])
	}
	if compared == 0 {
		t.doubt("in no quiet window did two apiservers answer discovery")
	}
	t.fact("quiet windows", len(f.quiet))
	t.fact("quiet windows and paths with two servers' documents", compared)
	return t
}

// comparePool holds every sighting against the most usual edition. The evidence prefers a counterpart in the same window.
func (f *Facts) comparePool(t *tally, pool []sighting) {
	usual := mostUsual(pool)
	for _, s := range pool {
		if f.alike(s.op.Path, editionOf(s.op), usual) {
			t.rule(rulingRight)
			continue
		}
		t.rule(rulingWrong)
		other := pool[0]
		for _, c := range pool {
			if editionOf(c.op) != usual {
				continue
			}
			other = c
			if c.quiet == s.quiet {
				break
			}
		}
		d, cause := f.contradiction(s.op, other.op)
		when := "at the same time"
		if other.quiet != s.quiet {
			when = "in another quiet time, in which the same was served"
		}
		t.violation(signature{s.op.Server, s.op.Path, s.op.Path + ": " + cause + " " + when}, s.op.End, "", func() Evidence {
			e := f.show(s.observation, situation{}, "")
			e.Operations = append(e.Operations, *other.op)
			e.Difference = d
			e.Sentence = fmt.Sprintf("%s answered %s at %s otherwise than %s did at %s: %s. %s", s.op.Server, s.op.Path, clock(s.op.Start),
				other.op.Server, clock(other.op.Start), cause, summary(d))
			return e
		})
	}
}

// mostUsual is the edition seen most often, and of equally frequent ones the first.
func mostUsual(pool []sighting) edition {
	count := map[edition]int{}
	for _, s := range pool {
		count[editionOf(s.op)]++
	}
	best := editionOf(pool[0].op)
	for _, s := range pool {
		if e := editionOf(s.op); count[e] > count[best] {
			best = e
		}
	}
	return best
}

// contradiction says how two answers that should be equal differ.
func (f *Facts) contradiction(a, b *history.Operation) (*Difference, string) {
	d := compareDocuments(Difference{
		Left: fmt.Sprintf("%s at %s", a.Server, clock(a.Start)), Right: fmt.Sprintf("%s at %s", b.Server, clock(b.Start)),
		LeftHash: a.Document, RightHash: b.Document, LeftETag: a.ETag, RightETag: b.ETag,
	}, f.documents[a.Document], f.documents[b.Document])
	switch {
	case a.Document == b.Document:
		return d, "same bytes, other ETag"
	case a.ETag == b.ETag && a.ETag != "":
		return d, "same ETag, other bytes"
	case f.documents[a.Document] == nil || f.documents[b.Document] == nil:
		return d, "other bytes, of which no document was made"
	case d.OrderOnly:
		return d, "same resources in another order"
	case d.OnlyLeftTotal+d.OnlyRightTotal > 0:
		return d, "other resources"
	default:
		return d, "same resources, other bytes"
	}
}
