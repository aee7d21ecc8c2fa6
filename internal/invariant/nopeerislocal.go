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
	Sentence: "Discovery with profile=nopeer lists exactly what the asked apiserver serves itself, and nothing of its peers.",
	Source:   "KEP-4020, Design Details, Discovery Merging: profile=nopeer is the local view, by which peers learn of each other",
	judge:    judgeNoPeer,
	pressure: []pressure{skewed, ownDocuments},
}

// judgeNoPeer compares the local views that clients get with the views that the administrator gets.
// The same program answers both, so only [Facts.doubtTruth] can find an answer that is wrong in
// both.
func judgeNoPeer(f *Facts) *tally {
	t := newTally(f)
	for _, o := range f.observations {
		r, cause := f.ruleNoPeer(o)
		if q := f.steadyAt(o.window); q != nil && (r == rulingRight || r == rulingWrong) {
			t.relied[q] = true
		}
		if !t.rule(o, r) {
			continue
		}
		t.violation(t.breach(o, situation{}, o.op.Path+" "+cause, o.op.Path+" "+cause), func() Evidence {
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

// ruleNoPeer compares a local view with what the server is known to have served at that time.
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
