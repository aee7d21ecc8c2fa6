package invariant

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var onlyTrustedPeers = Invariant{
	Name:  "OnlyTrustedPeers",
	Grade: GradeCore,
	Sentence: "No apiserver passes a request on to a server whose certificate it must not trust, and no apiserver accepts a " +
		"user from a server whose front-proxy certificate it must not trust.",
	Source: "KEP-4020, Proxy transport between apiservers and authn: the source verifies the destination's serving certificate " +
		"(--peer-ca-file), the destination the source's front-proxy certificate (--requestheader-client-ca-file, --requestheader-allowed-names)",
	judge:    judgeOnlyTrustedPeers,
	unknown:  "the records of the servers are incomplete",
	pressure: []pressure{skewed},
}

// judgeOnlyTrustedPeers judges the links on which only the servers themselves reject requests. A
// server that refuses to start with such a certificate also fulfils the demand.
func judgeOnlyTrustedPeers(f *Facts) *tally {
	t := newTally(f)
	untrusted, refusedToStart := 0, 0
	for _, fault := range f.faultList {
		if fault.Distrust != "" && fault.Server != "" && fault.Evidence.Refused > 0 {
			refusedToStart++
			t.rule(nil, rulingRight)
		}
	}
	for o := range f.identified() {
		r, wrong, cause := f.ruleTrust(o)
		if r == rulingRight || r == rulingWrong {
			untrusted++
		}
		t.ruleHops(r, o, asUser, wrong, cause, cause)
	}
	t.fact("operations that an untrusted server could have served", untrusted)
	t.fact("servers that refused to start with such a certificate", refusedToStart)
	return t
}

// ruleTrust rules on one operation. It describes a violation twice: wrong names no server, cause
// does. The invariant applies if a server got the operation over an untrusted link, or if the asked
// server could have forwarded the operation over one. The operation is unjudgeable if log entries
// are missing: no server has recorded it, or every server that could have answered it was out of
// reach.
func (f *Facts) ruleTrust(o *observation) (r ruling, wrong, cause string) {
	paths, _ := f.chains(o)
	for i, path := range paths {
		if len(path) < 2 {
			continue
		}
		if wrong, cause := f.wrongTrust(o, o.hops[i], path[len(path)-2], path[len(path)-1]); cause != "" {
			return rulingWrong, wrong, cause
		}
	}
	couldForward := o.skewed() && slices.ContainsFunc(o.capable, func(p peer) bool {
		return slices.ContainsFunc(f.faults[link{o.op.Server, p.server.name}], func(fault history.Fault) bool {
			return fault.Distrust != "" && fullyOn(fault).holds(o.window)
		})
	})
	switch {
	case !couldForward:
		return rulingNone, "", ""
	case len(o.hops) == 0 || o.op.Status/100 == 2 && f.cutOff(o, *o.situation, o.window):
		return rulingUnknown, "", ""
	default:
		return rulingRight, "", ""
	}
}

// wrongTrust says what a hop trusted although it must not, or "": wrong without names of servers,
// cause with them. A server that must not trust a front-proxy certificate rejects the request (401)
// or handles it as anonymous.
func (f *Facts) wrongTrust(o *observation, h history.Hop, from, to string) (wrong, cause string) {
	for _, fault := range f.faults[link{from, to}] {
		switch {
		case fault.Distrust == "" || !fullyOn(fault).holds(window{o.op.Start, h.Start}):
		case fault.Distrust == history.DistrustServing:
			return "passed on to a server whose certificate cannot be trusted",
				fmt.Sprintf("%s passed it on to %s, whose certificate it cannot trust", from, to)
		case h.Status != http.StatusUnauthorized && h.User != "" && h.User != "system:anonymous":
			return "accepted from a server whose front-proxy certificate cannot be trusted",
				fmt.Sprintf("%s accepted the user from %s, whose front-proxy certificate it cannot trust", to, from)
		}
	}
	return "", ""
}

// fullyOn is the time in which a fault surely has its effect. At the beginning of the fault, a
// request may still use a connection of the earlier process.
func fullyOn(fault history.Fault) window {
	return window{later(fault.Start, settle), later(fault.End, -settle)}
}
