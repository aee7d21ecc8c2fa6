package invariant

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var openAPIDescribes = Invariant{
	Name:     "OpenAPIDescribes",
	Grade:    GradeExtended,
	Sentence: "An apiserver that is asked for its OpenAPI description gives one, and every group version that it serves itself is in it.",
	Source:   "beyond KEP-4020, which leaves OpenAPI as it is; kubectl and controllers validate and convert by it",
	judge:    judgeOpenAPI,
}

func judgeOpenAPI(f *Facts) *tally {
	t := f.timely()
	for _, o := range f.observations {
		r, missing := f.ruleOpenAPI(o)
		if !t.rule(r) {
			continue
		}
		cause := o.op.Path + " leaves out what the server serves itself"
		if missing == nil {
			cause = fmt.Sprintf("%s is answered %d", o.op.Path, o.op.Status)
			if o.op.Status == http.StatusOK {
				cause += ", and not with a description"
			}
		}
		t.violation(signature{o.op.Server, o.op.Path, cause}, o.op.End, "", func() Evidence {
			if missing == nil {
				return f.show(o, situation{}, answer(o.op))
			}
			return f.show(o, situation{}, "described nothing of "+strings.Join(missing, ", ")+", which it serves itself")
		})
	}
	return t
}

// ruleOpenAPI holds a description against what its server has served for Staleness: descriptions are made a moment after what they describe.
// It says what is missing; nothing if the answer is no description at all.
func (f *Facts) ruleOpenAPI(o *observation) (r ruling, missing []string) {
	switch {
	case o.op.Verb != history.VerbOpenAPI || !o.ready || !routed(o.op) || o.op.Failure != history.FailureNone:
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
	described, own := f.documents[o.op.Document], o.asked.servedAt(o.op.Start)
	if described == nil || own.doc == nil || !own.holds(o.window) || o.op.Start < later(own.from, f.bounds.Staleness) {
		return rulingUnknown, nil
	}
	for _, r := range own.doc.Resources {
		of := history.GVR{Group: r.Group, Version: r.Version}
		if name := strings.TrimPrefix(r.Group+"/"+r.Version, "/"); !described.lists[key{GVR: of}] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return rulingWrong, missing
	}
	return rulingRight, nil
}
