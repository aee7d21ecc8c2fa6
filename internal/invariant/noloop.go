package invariant

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var noLoop = Invariant{
	Name:     "NoLoop",
	Grade:    GradeCore,
	Sentence: "A request is passed on at most once, and never to a server that is handling it already.",
	Source: "KEP-4020, Risks and Mitigations 4, and Design Details, Aggregation Layer: a request whose header says that it was rerouted " +
		"is not rerouted again",
	judge:    judgeNoLoop,
	pressure: []pressure{skewed},
}

func judgeNoLoop(f *Facts) *tally {
	t := newTally(f)
	passedOn, again, silent := 0, 0, 0
	for o := range f.identified() {
		if len(o.hops) == 0 {
			if o.op.Status != 0 {
				silent++
			}
			continue
		}
		paths, retries := chains(o.op.Server, o.hops)
		again += retries
		if !slices.ContainsFunc(paths, func(path []string) bool { return len(path) > 1 }) {
			continue
		}
		passedOn++
		r, cause := rulingRight, ""
		if i := slices.IndexFunc(paths, func(path []string) bool { return loop(path) != "" }); i >= 0 {
			r, cause = rulingWrong, loop(paths[i])
		}
		t.ruleHops(r, o, noDetail, cause, cause)
	}
	if passedOn == 0 {
		t.doubt("no operation was handled by a second server, so none could loop")
	}
	t.fact("operations passed on", passedOn)
	t.fact("sent again by the client", again)
	t.fact("answered operations that no server has recorded", silent)
	return t
}

// loop says what is wrong with a chain of servers, or "".
func loop(path []string) string {
	last := path[len(path)-1]
	switch {
	case slices.Contains(path[:len(path)-1], last):
		return "it came back to " + last + " (" + pathText(path) + ")"
	case len(path) > 2:
		return "it was passed on twice (" + pathText(path) + ")"
	default:
		return ""
	}
}

var passedOnUnchanged = Invariant{
	Name:     "PassedOnUnchanged",
	Grade:    GradeCore,
	Sentence: "A request that is passed on reaches the other server as its client sent it.",
	Source: "RFC 9110, 7.6 and 7.7: an intermediary forwards also what it does not know; a proxy must not modify path and query, and " +
		"only a proxy that the client has chosen for that may change the meaning of a message",
	judge:    judgePassedOnUnchanged,
	pressure: []pressure{skewed},
}

func judgePassedOnUnchanged(f *Facts) *tally {
	t := newTally(f)
	for o := range f.identified() {
		if !o.forwarded() {
			continue
		}
		r, cause, what := rulingRight, "", ""
		if i := slices.IndexFunc(o.hops, func(h history.Hop) bool { return atPeer(o.op, h) && h.Altered != "" }); i >= 0 {
			part, _, _ := strings.Cut(o.hops[i].Altered, ":")
			altered := "it was altered before it reached " + o.hops[i].Server
			r, cause, what = rulingWrong, altered+" ("+part+")", altered+" ("+o.hops[i].Altered+")"
		}
		t.ruleHops(r, o, noDetail, cause, what)
	}
	if t.verdict.Checked == 0 {
		t.doubt("no operation was handled by a second server, so none could be altered on the way")
	}
	t.fact("operations passed on", t.verdict.Checked)
	return t
}
