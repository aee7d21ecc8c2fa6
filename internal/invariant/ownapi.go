package invariant

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// legacyListsOwn demands only what was already true before the Mixed Version Proxy, because the KEP
// merges only the aggregated format (docs/findings.md, 17).
var legacyListsOwn = Invariant{
	Name:    "LegacyListsOwn",
	Grade:   GradeExtended,
	Outside: true,
	Sentence: "An apiserver answers requests for /apis and /api in formats older than aggregated discovery, and lists every " +
		"built-in group version that it serves itself.",
	Source:   "beyond KEP-4020, which does not change the older formats (Summary, note 2); clients older than KEP-3352 have nothing else",
	judge:    func(f *Facts) *tally { return f.judgeOwnAPI(f.ruleLegacy, "a list", "listed") },
	pressure: []pressure{legacyDocuments},
}

var openAPIDescribes = Invariant{
	Name:    "OpenAPIDescribes",
	Grade:   GradeExtended,
	Outside: true,
	Sentence: "An apiserver answers requests for its OpenAPI description, and describes every group version that it serves " +
		"itself, except those of aggregated APIs, which their own servers describe.",
	Source:   "beyond KEP-4020, which does not change OpenAPI; kubectl and controllers validate and convert by it",
	judge:    func(f *Facts) *tally { return f.judgeOwnAPI(f.ruleOpenAPI, "a description", "described") },
	pressure: []pressure{descriptions},
}

// judgeOwnAPI applies a rule about a server's documents of its own API. The rule also returns the
// group versions that a document lacks. It returns none if the response is not a document.
func (f *Facts) judgeOwnAPI(rule func(*observation) (ruling, []string), noun, verb string) *tally {
	t := newTimedTally(f)
	for _, o := range f.observations {
		r, missing := rule(o)
		if !t.rule(o, r) {
			continue
		}
		path, _, _ := strings.Cut(o.op.Path, "?")
		cause, complaint := fmt.Sprintf("%s is answered %d", path, o.op.Status), answer(o.op)
		switch {
		case missing != nil:
			cause = path + " lacks what the server serves itself"
			complaint = verb + " nothing of " + strings.Join(missing, ", ") + ", which it serves itself"
		case o.op.Status == http.StatusOK:
			cause += " without " + noun
		}
		t.violate(o, situation{}, cause, cause, complaint)
	}
	return t
}

// asksOwnAPI reports whether the operation has this verb and asks a server that has been ready for
// Staleness.
func (f *Facts) asksOwnAPI(o *observation, verb string) bool {
	return o.op.Verb == verb && o.ready && routed(o.op) && o.op.Failure == history.FailureNone &&
		o.op.Start >= later(o.readySince, f.bounds.Staleness)
}

// settledDocument is the document that the asked server has served for Staleness, or nil if that is
// unknown. A server makes lists and descriptions a moment after the resources that they describe.
func (f *Facts) settledDocument(o *observation) *document {
	own := o.asked.servedAt(o.op.Start)
	if !own.holds(o.window) || o.op.Start < later(own.from, f.bounds.Staleness) {
		return nil
	}
	return own.doc
}

func (f *Facts) ruleLegacy(o *observation) (r ruling, missing []string) {
	switch {
	case !f.asksOwnAPI(o, history.VerbLegacy):
		return rulingNone, nil
	case o.op.Status >= http.StatusBadRequest || f.unparsed(o.op):
		return rulingWrong, nil
	case o.op.Status != http.StatusOK || o.op.Document == "":
		return rulingNone, nil
	}
	core := !strings.HasPrefix(o.op.Path, "/apis")
	return f.ruleContents(o, func(gv groupVersion) bool { return (gv.group == "") == core && builtIn(gv.group) })
}

func (f *Facts) ruleOpenAPI(o *observation) (r ruling, missing []string) {
	of, one := describedVersion(o.op.Path)
	switch {
	case !f.asksOwnAPI(o, history.VerbOpenAPI):
		return rulingNone, nil
	case o.op.Status >= http.StatusBadRequest && !one:
		return rulingWrong, nil
	case one && (!builtIn(of.Group) || f.aggregated(groupVersion{of.Group, of.Version})):
		return rulingNone, nil // another server describes it, or it is not established yet
	case f.unparsed(o.op):
		return rulingWrong, nil
	case o.op.Status != http.StatusOK && !one || o.op.Status == http.StatusOK && o.op.Document == "":
		return rulingNone, nil
	}
	if one {
		return f.ruleOneVersion(o, of)
	}
	return f.ruleContents(o, func(gv groupVersion) bool { return !f.aggregated(gv) })
}

// ruleContents rules on a document that must have every group version that the server serves
// itself. some selects the group versions.
func (f *Facts) ruleContents(o *observation, some func(groupVersion) bool) (r ruling, missing []string) {
	document, own := f.documents[o.op.Document], f.settledDocument(o)
	if document == nil || own == nil {
		return rulingUnknown, nil
	}
	for _, r := range own.Resources {
		name := strings.TrimPrefix(r.Group+"/"+r.Version, "/")
		if some(groupVersion{r.Group, r.Version}) && !document.lists[key{GVR: history.GVR{Group: r.Group, Version: r.Version}}] &&
			!slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return rulingWrong, missing
	}
	return rulingRight, nil
}

// aggregated reports whether a step of the run defined an aggregated API in a group version. Its
// own server describes it, and every apiserver copies the description, as often as it likes.
func (f *Facts) aggregated(gv groupVersion) bool {
	return slices.ContainsFunc(f.steps, func(s history.Step) bool {
		d := s.Defined
		return d != nil && d.Aggregated && d.Group == gv.group && slices.Contains(d.Versions, gv.version)
	})
}

// describedVersion is the group version whose description is at a path.
func describedVersion(path string) (of history.GVR, ok bool) {
	path, _, _ = strings.Cut(path, "?")
	rest, ok := strings.CutPrefix(path, "/openapi/v3/apis/")
	if !ok {
		return of, false
	}
	of.Group, of.Version, ok = strings.Cut(rest, "/")
	return of, ok && of.Version != ""
}

// ruleOneVersion rules on the description of one group version. A server need not describe a group
// version that it does not serve.
func (f *Facts) ruleOneVersion(o *observation, of history.GVR) (r ruling, missing []string) {
	described, own := f.documents[o.op.Document], f.settledDocument(o)
	switch {
	case own == nil:
		return rulingUnknown, nil
	case !own.lists[key{GVR: of}]:
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

// builtIn reports whether a group is compiled into apiservers.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}
