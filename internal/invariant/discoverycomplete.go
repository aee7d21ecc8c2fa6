package invariant

import "fmt"

var discoveryComplete = Invariant{
	Name:    "DiscoveryComplete",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "While nothing changes, discovery lists exactly what the apiservers serve between them: nothing is " +
		"missing and nothing is made up.",
	Source: "KEP-4020, Goals: discovery reports the same set of resources whichever apiserver is asked; at /api others' subresources may be missing (Summary, note 1)",
	judge:  judgeComplete,
}

func judgeComplete(f *Facts) *tally {
	t := f.timely()
	judged := map[*quietWindow]bool{}
	for _, o := range f.observations {
		q := f.quietAt(o.window)
		if q == nil || !o.ready {
			continue
		}
		r, missing, surplus := f.ruleComplete(o, q.truth)
		judged[q] = judged[q] || r == rulingRight || r == rulingWrong
		if !t.rule(r) {
			continue
		}
		if f.unreadable(o.op) {
			t.violation(signature{o.op.Server, o.op.Path, fmt.Sprintf("%s is answered %d, and not with what is served", o.op.Path, o.op.Status)}, o.op.End, "", func() Evidence {
				return f.show(o, situation{}, answer(o.op)+", and not with what is served")
			})
			continue
		}
		cause := o.op.Path + " lists what nobody serves"
		switch {
		case missing && surplus:
			cause = o.op.Path + " lacks what is served and lists what nobody serves"
		case missing:
			cause = o.op.Path + " lacks what is served"
		}
		t.violation(signature{o.op.Server, o.op.Document, cause}, o.op.End, "", func() Evidence {
			e := f.show(o, situation{}, "")
			doc := f.documents[o.op.Document]
			e.Difference = contrast(Difference{
				Left: o.op.Path + " of " + o.op.Server, Right: "the union of what all serve", LeftHash: doc.Hash, LeftETag: o.op.ETag,
			}, listing(doc, o.op.Path), f.union(q.truth, o.op.Path))
			e.Sentence = fmt.Sprintf("%s answered %s at %s: %s.", o.op.Server, o.op.Path, clock(o.op.Start), summary(e.Difference))
			return e
		})
	}
	t.fact("quiet windows", len(f.quiet))
	if t.verdict.Checked+t.verdict.Unjudgeable == 0 {
		t.doubt("no merged discovery document was fetched in a quiet window")
	}
	t.doubts = append(t.doubts, f.indistinct(judged)...)
	return t
}

// ruleComplete holds a merged document against what all servers served by themselves.
func (f *Facts) ruleComplete(o *observation, t truth) (r ruling, missing, surplus bool) {
	doc, ok := f.merged(o.op)
	bad := f.unreadable(o.op)
	if !ok && !bad {
		return rulingNone, false, false
	}
	union := f.union(t, o.op.Path)
	if bad && union != nil { // as long as servers tell what they serve, they can write the format that was asked for
		return rulingWrong, false, false
	}
	if doc == nil || union == nil {
		return rulingUnknown, false, false
	}
	c := f.completeness(doc, o.op.Path, t, union)
	missing = len(c.missing) > 0 && (o.op.Path != pathCore || !foreignAtCore(c.missing, o.asked.servedAt(o.op.Start).doc))
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

// completenessKey names a comparison. The same few documents are fetched hundreds of times in a run.
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
