package invariant

import (
	"fmt"
)

var discoveryComplete = Invariant{
	Name:    "DiscoveryComplete",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "In steady state, discovery lists exactly what all apiservers together serve: nothing is missing " +
		"and nothing is added.",
	Source: "KEP-4020, Goals: discovery reports the same set of resources whichever apiserver is asked; at /api the subresources of other " +
		"apiservers may be missing (Summary, note 1)",
	judge:    judgeComplete,
	pressure: []pressure{mergedDocuments},
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
		if !t.rule(o, r) {
			continue
		}
		if f.unreadable(o.op) {
			cause := fmt.Sprintf("%s is answered %d without a discovery document", o.op.Path, o.op.Status)
			t.violate(o, situation{}, "no document", cause, answer(o.op)+" without a discovery document")
			continue
		}
		cause := o.op.Path + " lists what no server serves"
		switch {
		case missing && surplus:
			cause = o.op.Path + " lacks what is served and lists what no server serves"
		case missing:
			cause = o.op.Path + " lacks what is served"
		}
		t.violation(t.breach(o, situation{}, cause, cause), func() Evidence {
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
	if surplus := len(c.surplus) > 0; missing || surplus {
		return rulingWrong, missing, surplus
	}
	return rulingRight, false, false
}

// completeness is the result of comparing a document with a union.
type completeness struct {
	missing, surplus []element // in any order
}

// completenessKey names a comparison, because a run fetches the same few documents hundreds of
// times.
type completenessKey struct{ hash, path, truth string }

func (f *Facts) completeness(doc *document, path string, t truth, union map[element]bool) completeness {
	k := completenessKey{doc.Hash, path, t.sum}
	if c, ok := f.complete[k]; ok {
		return c
	}
	listed := listing(doc, path)
	c := completeness{missing: onlyIn(union, listed), surplus: onlyIn(listed, union)}
	f.complete[k] = c
	return c
}
