package invariant

import (
	"fmt"
	"maps"

	"github.com/skewproof/skewproof/internal/history"
)

var discoveryAccessible = Invariant{
	Name:    "DiscoveryAccessible",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "While nothing changes, whatever discovery lists can be asked for on every apiserver: none of them " +
		"says that it does not exist.",
	Source: "KEP-4020, Goals: everything that discovery lists can be accessed",
	judge:  judgeAccessible,
}

// leastCoverage is the part of the listed resources that has to be visited for a pass.
const leastCoverage = 0.9

// visit is one resource on one server.
type visit struct {
	key
	server string
}

func judgeAccessible(f *Facts) *tally {
	t := f.timely()
	listed := f.listedWhenQuiet()
	visited, swept, judged := map[visit]bool{}, map[string]bool{}, map[*quietWindow]bool{}
	for _, o := range f.observations {
		if o.resource == nil || o.op.GVR.Resource == "" || !o.ready || !routed(o.op) {
			continue
		}
		q := f.quietAt(o.window)
		if q == nil || !listed[q].all[o.resource.key] {
			continue
		}
		if o.op.Purpose == history.PurposeSweep {
			swept[o.op.Server] = true
		}
		if illegible(o.op) {
			t.rule(rulingUnknown)
			continue
		}
		judged[q] = true
		visited[visit{o.resource.key, o.op.Server}] = true
		if !resourceNotFound(o.op) {
			t.rule(rulingRight)
			continue
		}
		t.rule(rulingWrong)
		class, cause := circumstance(f.candidates(o, o.situation), o.op.Server)
		if cause == "" {
			cause = "and indeed nobody serves it"
		}
		t.violation(signature{o.op.Server, class, "listed, but 404, " + cause}, o.op.End, o.resource.String(), func() Evidence {
			return f.show(o, o.situation, answer(o.op)+" for what discovery lists")
		})
	}
	due, done := coverageOf(listed, visited, swept)
	switch {
	case len(listed) == 0:
		t.doubt("no merged discovery document was fetched in a quiet window")
	case len(swept) == 0:
		t.doubt("nothing that discovery lists was visited by a sweep in a quiet window")
	case float64(done) < leastCoverage*float64(due):
		t.doubt("only %d of %d listed resources were visited (on each of %s)", done, due, counted(len(swept), "swept server"))
	}
	t.doubts = append(t.doubts, f.indistinct(judged)...)
	t.fact("listed resources visited, over all swept servers", fmt.Sprintf("%d of %d", done, due))
	return t
}

// menu is what merged documents listed in one quiet window.
type menu struct {
	all      map[key]bool // subresources too
	readable map[key]bool // resources that can be asked for without changing anything
}

// listedWhenQuiet is what merged documents listed, by quiet window.
func (f *Facts) listedWhenQuiet() map[*quietWindow]menu {
	listed := map[*quietWindow]menu{}
	type seen struct {
		quiet *quietWindow
		hash  string
	}
	done := map[seen]bool{}
	for _, o := range f.observations {
		doc, ok := f.merged(o.op)
		if !ok || doc == nil || !o.ready {
			continue
		}
		q := f.quietAt(o.window)
		if q == nil || done[seen{q, doc.Hash}] {
			continue
		}
		done[seen{q, doc.Hash}] = true
		m, ok := listed[q]
		if !ok {
			m = menu{map[key]bool{}, map[key]bool{}}
			listed[q] = m
		}
		maps.Copy(m.all, doc.lists)
		maps.Copy(m.readable, doc.readable)
	}
	return listed
}

// coverageOf counts the listed resources on the swept servers, and those of them that were visited. Subresources, and
// resources that cannot be read (such as tokenreviews, which can only be created), cannot all be visited without leaving
// something behind: they are judged when visited, but not demanded.
func coverageOf(listed map[*quietWindow]menu, visited map[visit]bool, swept map[string]bool) (due, done int) {
	wanted := map[visit]bool{}
	for _, m := range listed {
		for k := range m.readable {
			for s := range swept {
				wanted[visit{k, s}] = true
			}
		}
	}
	for v := range wanted {
		if visited[v] {
			done++
		}
	}
	return len(wanted), done
}
