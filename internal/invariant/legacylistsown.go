package invariant

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// legacyListsOwn demands no more than what was so without the Mixed Version Proxy: the KEP merges the aggregated format alone (docs/findings.md, 17).
var legacyListsOwn = Invariant{
	Name:    "LegacyListsOwn",
	Grade:   GradeExtended,
	Outside: true,
	Sentence: "An apiserver that is asked for /apis or /api in a format older than aggregated discovery answers it, and lists every built-in group version " +
		"that it serves itself.",
	Source: "beyond KEP-4020, which leaves the older formats as they are (Summary, note 2); clients older than KEP-3352 know what there is from them alone",
	judge:  judgeLegacy,
}

func judgeLegacy(f *Facts) *tally {
	t := f.timely()
	for _, o := range f.observations {
		r, missing := f.ruleLegacy(o)
		if !t.rule(r) {
			continue
		}
		path, _, _ := strings.Cut(o.op.Path, "?")
		cause, complaint := fmt.Sprintf("%s is answered %d", path, o.op.Status), answer(o.op)
		if o.op.Status == http.StatusOK {
			cause += ", and not with a list"
		}
		if missing != nil {
			cause, complaint = path+" leaves out what the server serves itself", "listed nothing of "+strings.Join(missing, ", ")+", which it serves itself"
		}
		t.violation(signature{o.op.Server, path, cause}, o.op.End, "", func() Evidence { return f.show(o, situation{}, complaint) })
	}
	return t
}

// ruleLegacy holds a document against what its server has served for Staleness, and says what is missing; nothing if the answer lists nothing at all.
func (f *Facts) ruleLegacy(o *observation) (r ruling, missing []string) {
	switch {
	case o.op.Verb != history.VerbLegacy || !o.ready || !routed(o.op) || o.op.Failure != history.FailureNone:
		return rulingNone, nil
	case o.op.Start < later(o.readySince, f.bounds.Staleness):
		return rulingNone, nil
	case o.op.Status >= http.StatusBadRequest:
		return rulingWrong, nil
	case o.op.Status == http.StatusOK && f.documents[o.op.Document] == nil && o.op.Message != "": // why it could not be read
		return rulingWrong, nil
	case o.op.Status != http.StatusOK || o.op.Document == "":
		return rulingNone, nil
	}
	listed, own := f.documents[o.op.Document], o.asked.servedAt(o.op.Start)
	if listed == nil || own.doc == nil || !own.holds(o.window) || o.op.Start < later(own.from, f.bounds.Staleness) {
		return rulingUnknown, nil
	}
	core := !strings.HasPrefix(o.op.Path, "/apis")
	if missing = leftOut(own.doc, listed, func(group string) bool { return (group == "") == core && builtIn(group) }); len(missing) > 0 {
		return rulingWrong, missing
	}
	return rulingRight, nil
}
