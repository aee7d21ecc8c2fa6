package invariant

import (
	"slices"
)

var noLoop = Invariant{
	Name:     "NoLoop",
	Grade:    GradeCore,
	Sentence: "A request is passed on at most once, and never to a server that is handling it already.",
	Source: "KEP-4020, Risks and Mitigations 4, and Design Details, Aggregation Layer: a request whose header says that it was rerouted " +
		"is not rerouted again",
	judge:    judgeNoLoop,
	pressure: []pressure{skewed, passedOn, forgedHops},
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
		paths, retries := f.chains(o)
		again += retries
		if !slices.ContainsFunc(paths, func(path []string) bool { return len(path) > 1 }) {
			continue
		}
		passedOn++
		r, wrong, cause := rulingRight, "", ""
		for _, path := range paths {
			if wrong, cause = loop(path); wrong != "" {
				r = rulingWrong
				break
			}
		}
		t.ruleHops(r, o, noDetail, wrong, cause, cause)
	}
	if passedOn == 0 {
		t.doubt("no operation was handled by a second server, so none could loop")
	}
	t.fact("operations passed on", passedOn)
	t.fact("sent again by the client", again)
	t.fact("answered operations that no server has recorded", silent)
	return t
}

// loop says what is wrong with a chain of servers, or "": wrong without names of servers, cause
// with them.
func loop(path []string) (wrong, cause string) {
	last := path[len(path)-1]
	switch {
	case slices.Contains(path[:len(path)-1], last):
		return "came back", "it came back to " + last + " (" + pathText(path) + ")"
	case len(path) > 2:
		return "passed on twice", "it was passed on twice (" + pathText(path) + ")"
	default:
		return "", ""
	}
}
