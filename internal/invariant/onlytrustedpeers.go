package invariant

import (
	"fmt"
	"net/http"

	"github.com/skewproof/skewproof/internal/history"
)

var onlyTrustedPeers = Invariant{
	Name:  "OnlyTrustedPeers",
	Grade: GradeCore,
	Sentence: "No request is passed on to a server whose certificate is not to be trusted, and none is believed that comes from a server " +
		"which may not speak for users.",
	Source: "KEP-4020, Proxy transport between apiservers and authn: the source verifies the destination's serving certificate (--peer-ca-file), " +
		"the destination the source's front-proxy certificate (--requestheader-client-ca-file, --requestheader-allowed-names)",
	judge:    judgeOnlyTrustedPeers,
	pressure: []pressure{skewed},
}

// judgeOnlyTrustedPeers looks at ways that only the servers themselves bar. A server that would not even start with such a certificate has done what
// is asked of it, and what its peers would have done cannot be seen.
func judgeOnlyTrustedPeers(f *Facts) *tally {
	t := newTally()
	barred, refusedToStart := 0, 0
	for _, fault := range f.faultList {
		if fault.Distrust != "" && fault.Server != "" && fault.Evidence.Refused > 0 {
			refusedToStart++
			t.rule(rulingRight)
		}
	}
	for o, hops := range f.accounted() {
		r, cause := f.ruleTrust(o, hops)
		if r == rulingRight || r == rulingWrong {
			barred++
		}
		if t.rule(r) {
			f.violateOnTheWay(t, o, func() string { return routeAs(hops) }, cause, cause)
		}
	}
	t.fact("operations that a distrusted server could have served", barred)
	t.fact("servers that refused to start with such a certificate", refusedToStart)
	return t
}

// ruleTrust rules on one operation, and says between whom trust was misplaced. It is its business if a server had it from one that it must not
// believe, or if the asked server could have passed it on to one that it must not trust. Where no server has an account of it, or nobody was left who
// could have answered as somebody did, accounts are missing, and it is unknown.
func (f *Facts) ruleTrust(o *observation, hops []history.Hop) (ruling, string) {
	paths, _ := chains(o.op.Server, hops)
	for i, path := range paths {
		if len(path) < 2 {
			continue
		}
		from, to := path[len(path)-2], path[len(path)-1]
		if cause := f.misplaced(o, hops[i], from, to); cause != "" {
			return rulingWrong, cause
		}
	}
	if !o.skewed() || !f.tempted(o) {
		return rulingNone, ""
	}
	if len(hops) == 0 || o.op.Status/100 == 2 && f.severed(o, o.situation, o.window) {
		return rulingUnknown, ""
	}
	return rulingRight, ""
}

// misplaced says which trust a hop shows that must not be; "" if none. Who is asked with a front-proxy certificate that it cannot trust refuses it
// (401), or takes the request for nobody's.
func (f *Facts) misplaced(o *observation, h history.Hop, from, to string) string {
	for _, fault := range f.distrusts(from, to) {
		// A request that came before, or as it began, may still have gone over a connection of the process before.
		during := window{later(fault.Start, settle), later(fault.End, -settle)}
		if !during.holds(window{o.op.Start, h.Start}) {
			continue
		}
		switch {
		case fault.Distrust == history.DistrustServing:
			return fmt.Sprintf("%s passed it on to %s, whose certificate it cannot trust", from, to)
		case h.Status != http.StatusUnauthorized && h.User != "" && h.User != "system:anonymous":
			return fmt.Sprintf("%s believed %s, whose front-proxy certificate it cannot trust", to, from)
		}
	}
	return ""
}

// tempted reports whether some server that could serve the operation all the time was one that the asked server must not trust, or that must not
// believe it, all the time.
func (f *Facts) tempted(o *observation) bool {
	for _, p := range o.capable {
		for _, fault := range f.distrusts(o.op.Server, p.server.name) {
			if (window{later(fault.Start, settle), later(fault.End, -settle)}).holds(o.window) {
				return true
			}
		}
	}
	return false
}

// distrusts are the faults of certificates on a way between two servers, in time order.
func (f *Facts) distrusts(from, to string) []history.Fault {
	var out []history.Fault
	for _, fault := range f.faults[link{from, to}] {
		if fault.Distrust != "" {
			out = append(out, fault)
		}
	}
	return out
}
