package invariant

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var passedOnUnchanged = Invariant{
	Name:     "PassedOnUnchanged",
	Grade:    GradeCore,
	Sentence: "A request that is passed on reaches the other server as its client sent it.",
	Source: "RFC 9110, 7.6 and 7.7: an intermediary forwards also what it does not know; a proxy must not modify path and query, and " +
		"only a proxy that the client has chosen for that may change the meaning of a message",
	judge:    judgePassedOnUnchanged,
	pressure: []pressure{skewed, passedOn},
}

func judgePassedOnUnchanged(f *Facts) *tally {
	t := newTally(f)
	for o := range f.identified() {
		if !o.forwarded() {
			continue
		}
		r, part, cause, what := rulingRight, "", "", ""
		if i := slices.IndexFunc(o.hops, func(h history.Hop) bool { return atPeer(o.op, h) && h.Altered != "" }); i >= 0 {
			part, _, _ = strings.Cut(o.hops[i].Altered, ":")
			altered := "it was altered before it reached " + o.hops[i].Server
			r, cause, what = rulingWrong, altered+" ("+part+")", altered+" ("+o.hops[i].Altered+")"
		}
		t.ruleHops(r, o, noDetail, "altered on the way: "+part, cause, what)
	}
	if t.verdict.Checked == 0 {
		t.doubt("no operation was handled by a second server, so none could be altered on the way")
	}
	t.fact("operations passed on", t.verdict.Checked)
	return t
}
