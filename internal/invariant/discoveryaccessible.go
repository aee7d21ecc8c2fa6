package invariant

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/skewproof/skewproof/internal/history"
)

var discoveryAccessible = Invariant{
	Name:     "DiscoveryAccessible",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "In steady state, no apiserver answers 404 for a resource that discovery lists.",
	Source:   "KEP-4020, Goals: everything that discovery lists can be accessed",
	judge:    judgeAccessible,
	pressure: []pressure{mergedDocuments},
}

// leastCoverage is the share of the listed resources that must be visited for a pass.
const leastCoverage = 0.9

// visit is a request for one resource on one server.
type visit struct {
	key
	server string
}

func judgeAccessible(f *Facts) *tally {
	t := newTimedTally(f)
	listed := f.listedInSteadyState()
	visited, swept := map[visit]bool{}, map[string]bool{}
	for _, o := range f.observations {
		if o.resource == nil || o.op.GVR.Resource == "" || !o.ready || !routed(o.op) {
			continue
		}
		q := f.steadyAt(o.window)
		if q == nil || !listed[q].all[o.resource.key] {
			continue
		}
		if o.op.Purpose == history.PurposeSweep {
			swept[o.op.Server] = true
		}
		if truncated404(o.op) || resourceNotFound(o.op) && (o.local == claimListed || o.unread() || f.listedInVain(o)) {
			t.rule(o, rulingUnknown)
			continue
		}
		t.relied[q] = true
		visited[visit{o.resource.key, o.op.Server}] = true
		if !resourceNotFound(o.op) {
			t.rule(o, rulingRight)
			continue
		}
		t.rule(o, rulingWrong)
		why := cmp.Or(f.reachability(o, *o.situation), "and no server serves it")
		t.violate(o, *o.situation, "", "listed, but 404, "+why, answer(o.op)+" for what discovery lists")
	}
	// Not all of them can be visited without leaving objects behind: subresources, and resources
	// that cannot be read (such as tokenreviews, which can only be created). They are judged, but
	// need not be visited.
	due := map[visit]bool{}
	for _, l := range listed {
		for k := range l.readable {
			for s := range swept {
				due[visit{k, s}] = true
			}
		}
	}
	done := 0
	for v := range due {
		if visited[v] {
			done++
		}
	}
	switch {
	case len(listed) == 0:
		t.doubt("no merged discovery document was fetched in steady state")
	case len(swept) == 0:
		t.doubt("no sweep visited what discovery lists in steady state")
	case float64(done) < leastCoverage*float64(len(due)):
		t.doubt("only %d of %d listed resources were visited (on each of %s)", done, len(due), counted(len(swept), "swept server"))
	}
	t.fact("listed resources visited, over all swept servers", fmt.Sprintf("%d of %d", done, len(due)))
	return t
}

// listed is what merged documents listed in one steady window.
type listed struct {
	all      map[key]bool // with subresources
	readable map[key]bool // resources that can be read
}

// listedInSteadyState is what merged documents listed, by steady window.
func (f *Facts) listedInSteadyState() map[*steadyWindow]listed {
	out := map[*steadyWindow]listed{}
	type seen struct {
		steady *steadyWindow
		hash   string
	}
	done := map[seen]bool{}
	for _, o := range f.observations {
		doc, ok := f.merged(o.op)
		if !ok || doc == nil || !o.ready {
			continue
		}
		q := f.steadyAt(o.window)
		if q == nil || done[seen{q, doc.Hash}] {
			continue
		}
		done[seen{q, doc.Hash}] = true
		l, ok := out[q]
		if !ok {
			l = listed{map[key]bool{}, map[key]bool{}}
			out[q] = l
		}
		maps.Copy(l.all, doc.lists)
		maps.Copy(l.readable, doc.readable)
	}
	return out
}
