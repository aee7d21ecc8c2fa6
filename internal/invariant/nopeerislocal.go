package invariant

import (
	"fmt"
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

var noPeerIsLocal = Invariant{
	Name:     "NoPeerIsLocal",
	Grade:    GradeCore,
	Outside:  true,
	Sentence: "An apiserver that is asked for discovery with profile=nopeer lists exactly what it serves by itself, and nothing of its peers.",
	Source:   "KEP-4020, Design Details, Discovery Merging: profile=nopeer is the local view, by which peers learn of each other",
	judge:    judgeNoPeer,
	pressure: []pressure{skewed},
}

// judgeNoPeer holds what clients are answered against what the administrator is. Both ask for profile=nopeer, and where the server is its own front
// door (subject builtin), the same program answers both: what it answers everybody wrongly is seen only by what it should not be the same as, the
// local views of servers of other versions ([Facts.indistinct]). In front of a sidecar the administrator asks behind it.
func judgeNoPeer(f *Facts) *tally {
	t := newTally()
	judged := map[*quietWindow]bool{}
	for _, o := range f.observations {
		r, cause := f.ruleNoPeer(o)
		if q := f.quietAt(o.window); q != nil && (r == rulingRight || r == rulingWrong) {
			judged[q] = true
		}
		if !t.rule(r) {
			continue
		}
		t.violation(signature{o.op.Server, o.op.Path, o.op.Path + " " + cause}, o.op.End, "", func() Evidence {
			e := f.show(o, situation{}, "")
			answered, own := f.documents[o.op.Document], o.asked.servedAt(o.op.Start).doc
			e.Difference = contrast(Difference{
				Left: o.op.Path + " of " + o.op.Server, Right: "what it serves itself", LeftHash: answered.Hash, LeftETag: o.op.ETag, RightHash: own.Hash,
			}, listing(answered, o.op.Path), listing(own, o.op.Path))
			e.Sentence = fmt.Sprintf("%s was asked for %s with profile=nopeer at %s: %s.", o.op.Server, o.op.Path, clock(o.op.Start), summary(e.Difference))
			return e
		})
	}
	t.doubts = append(t.doubts, f.indistinct(judged)...)
	return t
}

// ruleNoPeer holds a local view against what its server is known to serve while it was asked for.
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
