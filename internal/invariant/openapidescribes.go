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
	Outside:  true,
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
	of, one := describedVersion(o.op.Path)
	switch {
	case o.op.Verb != history.VerbOpenAPI || !o.ready || !routed(o.op) || o.op.Failure != history.FailureNone:
		return rulingNone, nil
	case o.op.Start < later(o.readySince, f.bounds.Staleness):
		return rulingNone, nil
	case o.op.Status >= http.StatusBadRequest && !one:
		return rulingWrong, nil
	case one && !builtIn(of.Group):
		return rulingNone, nil // who describes that is another server, or not yet there
	case o.op.Status == http.StatusOK && f.documents[o.op.Document] == nil && o.op.Message != "": // why it could not be read
		return rulingWrong, nil
	case o.op.Status != http.StatusOK && !one || o.op.Status == http.StatusOK && o.op.Document == "":
		return rulingNone, nil
	}
	described, own := f.documents[o.op.Document], o.asked.servedAt(o.op.Start)
	if one {
		return f.ruleOneVersion(o, own, described, of)
	}
	if described == nil || own.doc == nil || !own.holds(o.window) || o.op.Start < later(own.from, f.bounds.Staleness) {
		return rulingUnknown, nil
	}
	if missing = leftOut(own.doc, described, func(string) bool { return true }); len(missing) > 0 {
		return rulingWrong, missing
	}
	return rulingRight, nil
}

// leftOut are the group versions of some groups that a server serves and a document has nothing of.
func leftOut(own, document *document, some func(group string) bool) (missing []string) {
	for _, r := range own.Resources {
		of := history.GVR{Group: r.Group, Version: r.Version}
		if name := strings.TrimPrefix(r.Group+"/"+r.Version, "/"); some(r.Group) && !document.lists[key{GVR: of}] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// describedVersion is the group version of which a path asks for the description.
func describedVersion(path string) (of history.GVR, ok bool) {
	path, _, _ = strings.Cut(path, "?")
	rest, ok := strings.CutPrefix(path, "/openapi/v3/apis/")
	if !ok {
		return of, false
	}
	of.Group, of.Version, ok = strings.Cut(rest, "/")
	return of, ok && of.Version != ""
}

// ruleOneVersion holds the description of one group version, or that there is none, against what the server serves itself. Of what it does not serve it
// need not have any.
func (f *Facts) ruleOneVersion(o *observation, own served, described *document, of history.GVR) (r ruling, missing []string) {
	switch {
	case own.doc == nil || !own.holds(o.window) || o.op.Start < later(own.from, f.bounds.Staleness):
		return rulingUnknown, nil
	case !own.doc.lists[key{GVR: of}]:
		return rulingNone, nil
	case o.op.Status >= http.StatusBadRequest:
		return rulingWrong, nil
	case o.op.Status != http.StatusOK:
		return rulingNone, nil
	case described == nil:
		return rulingUnknown, nil
	case !described.lists[key{GVR: of}]:
		return rulingWrong, []string{of.Group + "/" + of.Version}
	default:
		return rulingRight, nil
	}
}
