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
		"changes that mean something are for proxies that a client has chosen for them",
	judge:    judgePassedOnUnchanged,
	pressure: []pressure{skewed},
}

func judgePassedOnUnchanged(f *Facts) *tally {
	t := newTally()
	passed := 0
	for o, hops := range f.accounted() {
		if !passedOn(o.op, hops) {
			continue
		}
		passed++
		i := slices.IndexFunc(hops, func(h history.Hop) bool { return elsewhere(o.op, h) && h.Altered != "" })
		if i < 0 {
			t.rule(rulingRight)
			continue
		}
		t.rule(rulingWrong)
		part, _, _ := strings.Cut(hops[i].Altered, ":")
		f.violateOnTheWay(t, o, func() string { return route(hops) }, altered(hops[i].Server, part), altered(hops[i].Server, hops[i].Altered))
	}
	if passed == 0 {
		t.doubt("no operation was handled by a second server, so none could be altered on the way")
	}
	t.fact("operations passed on", passed)
	return t
}

// altered says that a server was asked something else than the client asked, and in what.
func altered(server, what string) string {
	return "what reached " + server + " had been altered (" + what + ")"
}
