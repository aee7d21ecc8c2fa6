package invariant

import (
	"fmt"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var identityPreserved = Invariant{
	Name:     "IdentityPreserved",
	Grade:    GradeCore,
	Sentence: "A request that is passed on is carried out as the user who sent it, with the same groups and whatever else is known of that user.",
	Source: "KEP-4020, Proxy transport between apiservers and authn: the destination takes the user from the request's headers, " +
		"not from the client certificate of the server that passed it on",
	judge:    judgeIdentityPreserved,
	pressure: []pressure{skewed},
}

func judgeIdentityPreserved(f *Facts) *tally {
	t := newTally()
	passed, unnamed := 0, 0
	known := f.firsthand()
	users := map[string]bool{}
	for o, hops := range f.accounted() {
		if passedOn(o.op, hops) {
			passed++
			users[o.op.User] = true
		}
		r, cause := ruleIdentity(o.op, hops)
		if r != rulingWrong {
			lost, other := known.unlike(o.op, hops)
			unnamed += lost
			if other != "" {
				r, cause = rulingWrong, other
			}
		}
		if t.rule(r) {
			f.violateOnTheWay(t, o, func() string { return routeAs(hops) }, cause, cause)
		}
	}
	if passed == 0 {
		t.doubt("no operation was handled by a second server, so no user had to be handed on")
	}
	t.fact("operations passed on", passed)
	if unnamed > 0 {
		t.fact("passed on without the user's UID, as versions before v1.33 do", unnamed)
	}
	t.fact("users whose operations were passed on", len(users)) // one alone might be what the proxy says of everybody
	return t
}

// ruleIdentity rules on one operation, and says which server took its user for whom. The asked server's account counts as well: what
// it passes on is what it believes. One that names nobody says nothing (its sender could not be authenticated), and that of the
// asked server alone says nothing of those behind it. The load impersonates nobody; if it did, an audit log would name the
// impersonator at the first server and the impersonated one at the next.
func ruleIdentity(op *history.Operation, hops []history.Hop) (ruling, string) {
	told := false
	for _, h := range hops {
		switch {
		case op.User == "" || h.User == "":
		case h.User != op.User:
			return rulingWrong, fmt.Sprintf("%s took %s for %s", h.Server, op.User, h.User)
		default:
			told = told || elsewhere(op, h)
		}
	}
	switch {
	case told:
		return rulingRight, ""
	case passedOn(op, hops):
		return rulingUnknown, ""
	default:
		return rulingNone, ""
	}
}

// elsewhere reports whether a hop is of a server that the operation was passed on to, rather than asked of.
func elsewhere(op *history.Operation, h history.Hop) bool {
	return h.Server != op.Server || h.Rerouted || h.From != ""
}

func passedOn(op *history.Operation, hops []history.Hop) bool {
	return slices.ContainsFunc(hops, func(h history.Hop) bool { return elsewhere(op, h) })
}

// routeAs is the route of an operation with the user that each server saw.
func routeAs(hops []history.Hop) string {
	parts := make([]string, 0, len(hops))
	for _, h := range hops {
		as := "for nobody it names"
		if h.User != "" {
			as = "as " + h.User
		}
		parts = append(parts, fmt.Sprintf("%s from %s to %s %s", h.Server, clock(h.Start), clock(h.End), as))
	}
	return strings.Join(parts, ", ")
}
