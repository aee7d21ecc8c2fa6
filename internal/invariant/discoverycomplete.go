package invariant

import (
	"fmt"
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

var discoveryComplete = Invariant{
	Name:    "DiscoveryComplete",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "In steady state, discovery lists exactly what all apiservers together serve: nothing is missing " +
		"and nothing is added.",
	Source: "KEP-4020, Goals: discovery reports the same set of resources whichever apiserver is asked; at /api the subresources of other " +
		"apiservers may be missing (Summary, note 1)",
	judge: judgeComplete,
}

func judgeComplete(f *Facts) *tally {
	t := newTimedTally(f)
	for _, o := range f.observations {
		q := f.steadyAt(o.window)
		if q == nil || !o.ready {
			continue
		}
		r, missing, surplus := f.ruleComplete(o, q.truth)
		if r == rulingRight || r == rulingWrong {
			t.relied[q] = true
		}
		if !t.rule(r) {
			continue
		}
		if f.unreadable(o.op) {
			cause := fmt.Sprintf("%s is answered %d without a discovery document", o.op.Path, o.op.Status)
			t.violation(signature{o.op.Server, o.op.Path, cause}, o.op.End, "", func() Evidence {
				return f.show(o, situation{}, answer(o.op)+" without a discovery document")
			})
			continue
		}
		cause := o.op.Path + " lists what no server serves"
		switch {
		case missing && surplus:
			cause = o.op.Path + " lacks what is served and lists what no server serves"
		case missing:
			cause = o.op.Path + " lacks what is served"
		}
		t.violation(signature{o.op.Server, o.op.Document, cause}, o.op.End, "", func() Evidence {
			e := f.show(o, situation{}, "")
			doc := f.documents[o.op.Document]
			e.Difference = contrast(Difference{
				Left: o.op.Path + " of " + o.op.Server, Right: "the union of what all serve", LeftHash: doc.Hash, LeftETag: o.op.ETag,
			}, listing(doc, o.op.Path), f.union(q.truth, o.op.Path))
			e.Sentence = fmt.Sprintf("%s answered %s at %s: %s.", o.op.Server, o.op.Path, clock(o.op.Start), e.Difference.summary())
			return e
		})
	}
	t.fact("steady windows", len(f.steady))
	if t.verdict.Checked+t.verdict.Unjudgeable == 0 {
		t.doubt("no merged discovery document was fetched in steady state")
	}
	return t
}

// ruleComplete compares a merged document with what all servers served themselves.
func (f *Facts) ruleComplete(o *observation, t truth) (r ruling, missing, surplus bool) {
	doc, ok := f.merged(o.op)
	bad := f.unreadable(o.op)
	if !ok && !bad {
		return rulingNone, false, false
	}
	union := f.union(t, o.op.Path)
	if bad && union != nil { // the servers answer with profile=nopeer, so they can write this format
		return rulingWrong, false, false
	}
	if doc == nil || union == nil {
		return rulingUnknown, false, false
	}
	c := f.completeness(doc, o.op.Path, t, union)
	missing = len(c.missing) > 0 && (o.op.Path != pathCore || !onlyForeignSubresources(c.missing, o.asked.servedAt(o.op.Start).doc))
	if missing || c.surplus {
		return rulingWrong, missing, c.surplus
	}
	return rulingRight, false, false
}

// completeness is how a document compares with a union.
type completeness struct {
	missing []element // in any order
	surplus bool
}

// completenessKey names a comparison. A run fetches the same few documents hundreds of times.
type completenessKey struct{ hash, path, truth string }

func (f *Facts) completeness(doc *document, path string, t truth, union map[element]bool) completeness {
	k := completenessKey{doc.Hash, path, t.sum}
	if c, ok := f.complete[k]; ok {
		return c
	}
	listed := listing(doc, path)
	var c completeness
	for e := range union { // in any order
		if !listed[e] {
			c.missing = append(c.missing, e)
		}
	}
	for e := range listed {
		c.surplus = c.surplus || !union[e]
	}
	f.complete[k] = c
	return c
}

var noPeerIsLocal = Invariant{
	Name:     "NoPeerIsLocal",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "An apiserver that is asked for discovery with profile=nopeer lists exactly what it serves itself, and nothing of its peers.",
	Source:   "KEP-4020, Design Details, Discovery Merging: profile=nopeer is the local view, by which peers learn of each other",
	judge:    judgeNoPeer,
	pressure: []pressure{skewed},
}

// judgeNoPeer compares the local views that clients get with those that the administrator gets.
// Without a sidecar (subject builtin) the same program answers both, so only [Facts.doubtTruth] can
// find what it answers wrongly to both. With a sidecar the administrator asks the kube-apiserver
// behind it.
func judgeNoPeer(f *Facts) *tally {
	t := newTally(f)
	for _, o := range f.observations {
		r, cause := f.ruleNoPeer(o)
		if q := f.steadyAt(o.window); q != nil && (r == rulingRight || r == rulingWrong) {
			t.relied[q] = true
		}
		if !t.rule(r) {
			continue
		}
		t.violation(signature{o.op.Server, o.op.Path, o.op.Path + " " + cause}, o.op.End, "", func() Evidence {
			e := f.show(o, situation{}, "")
			answered, own := f.documents[o.op.Document], o.asked.servedAt(o.op.Start).doc
			e.Difference = contrast(Difference{
				Left: o.op.Path + " of " + o.op.Server, LeftHash: answered.Hash, LeftETag: o.op.ETag,
				Right: "what it serves itself", RightHash: own.Hash,
			}, listing(answered, o.op.Path), listing(own, o.op.Path))
			e.Sentence = fmt.Sprintf("%s was asked for %s with profile=nopeer at %s: %s.",
				o.op.Server, o.op.Path, clock(o.op.Start), e.Difference.summary())
			return e
		})
	}
	return t
}

// ruleNoPeer compares a local view with what the server is known to have served while it was asked.
func (f *Facts) ruleNoPeer(o *observation) (ruling, string) {
	if o.op.Verb != history.VerbNoPeer || !o.ready || o.op.Status != http.StatusOK || o.op.Failure != history.FailureNone {
		return rulingNone, ""
	}
	answered, own := f.documents[o.op.Document], o.asked.servedAt(o.op.Start)
	if answered == nil || own.doc == nil || !own.holds(o.window) || o.op.Path == pathCore && !own.doc.core {
		return rulingUnknown, ""
	}
	got, want := listing(answered, o.op.Path), listing(own.doc, o.op.Path)
	switch {
	case len(lacking(got, want)) > 0:
		return rulingWrong, "lists what the server does not serve itself"
	case len(lacking(want, got)) > 0:
		return rulingWrong, "lacks what the server serves itself"
	default:
		return rulingRight, ""
	}
}
