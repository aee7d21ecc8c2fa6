package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var noLoop = Invariant{
	Name:     "NoLoop",
	Grade:    GradeCore,
	Sentence: "A request is passed on at most once, and never to a server that is handling it already.",
	Source:   "KEP-4020, Risks and Mitigations 4, and Design Details, Aggregation Layer: a request whose header says that it was rerouted is not rerouted again",
	judge:    judgeNoLoop,
	pressure: []pressure{skewed},
}

func judgeNoLoop(f *Facts) *tally {
	t := newTally()
	passedOn, again, silent := 0, 0, 0
	for o, hops := range f.accounted() {
		if len(hops) == 0 {
			if o.op.Status != 0 {
				silent++
			}
			continue
		}
		paths, retries := chains(o.op.Server, hops)
		again += retries
		proxied, cause := false, ""
		for _, path := range paths {
			proxied = proxied || len(path) > 1
			if c := loop(path); c != "" && cause == "" {
				cause = c
			}
		}
		if !proxied {
			continue
		}
		passedOn++
		if cause == "" {
			t.rule(rulingRight)
			continue
		}
		t.rule(rulingWrong)
		f.violateOnTheWay(t, o, func() string { return route(hops) }, cause, cause)
	}
	if passedOn == 0 {
		t.doubt("no operation was handled by a second server, so none could go round")
	}
	t.fact("operations passed on", passedOn)
	t.fact("sent again by the client", again)
	t.fact("answered operations without any server's account", silent)
	return t
}

// chains arranges the hops of one operation by which server passed it on to which: hop h was made from the latest-begun
// hop whose time contains h's. It returns the servers along each way, the asked one first.
//
// Only containment tells a chain a→b→c, which is a loop in the making, from a failover a→b, then a→c, which is one hop
// each. It can be relied on: a server writes its audit event before it ends the response, hence before the one that passed
// the request on can. Three things look like chains and are not:
//   - A client (net/http's Transport) may send a request again under the same ID while the asked server is still busy with
//     the first try: a hop there that does not come from a peer begins a way of its own.
//   - A peer that does not answer is given up, and may still be at it while the next one is tried: a hop that outlasts
//     the one that made it was given up, and made no others.
//   - A hop elsewhere with no container was passed on by the asked server, whose own account is lost (it was killed).
//
// Where the history says who passed it on (the simulator knows), none of this need be inferred: h was made from the latest-begun hop
// of that server, or from one whose account is lost.
func chains(asked string, hops []history.Hop) (paths [][]string, retries int) {
	paths = make([][]string, len(hops))
	givenUp := make([]bool, len(hops))
	roots := 0
	for i, h := range hops {
		if h.Server == asked && !h.Rerouted {
			roots++
			paths[i] = []string{asked}
			continue
		}
		parent := []string{asked}
		if h.From != "" && h.From != asked {
			parent = []string{asked, h.From}
		}
		for j := i - 1; j >= 0; j-- {
			if h.From != "" { // when it ended says nothing then
				if hops[j].Server == h.From && hops[j].Start <= h.Start && hops[j].End >= h.Start {
					parent = paths[j]
					break
				}
				continue
			}
			if hops[j].Start > h.Start || hops[j].End < h.Start || givenUp[j] {
				continue
			}
			if h.End <= hops[j].End {
				parent = paths[j]
				givenUp[i] = false
				break
			}
			givenUp[i] = true
		}
		paths[i] = append(slices.Clone(parent), h.Server)
	}
	return paths, max(0, roots-1)
}

// loop says what is wrong with a way, or nothing.
func loop(path []string) string {
	last := path[len(path)-1]
	for _, earlier := range path[:len(path)-1] {
		if earlier == last {
			return "it came back to " + last + " (" + way(path) + ")"
		}
	}
	if len(path) > 2 {
		return "it was passed on twice (" + way(path) + ")"
	}
	return ""
}

func way(path []string) string {
	if len(path) > mostHops {
		return strings.Join(path[:mostHops], "→") + "→…"
	}
	return strings.Join(path, "→")
}

// mostHops is how many hops a sentence names: a request that nothing stops is handled by thousands.
const mostHops = 8

func route(hops []history.Hop) string {
	var parts []string
	for _, h := range hops[:min(len(hops), mostHops)] {
		parts = append(parts, fmt.Sprintf("%s from %s to %s", h.Server, clock(h.Start), clock(h.End)))
	}
	if more := len(hops) - mostHops; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d times more", more))
	}
	return strings.Join(parts, ", ")
}
