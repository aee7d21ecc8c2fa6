package invariant

import (
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var noFalseNotFound = Invariant{
	Name:    "NoFalseNotFound",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "No request is told that a resource does not exist (404) while some live apiserver serves it, " +
		"even if that apiserver is paused or cut off.",
	Source:   "KEP-4020, Goals: requests reach an apiserver that can serve them; if it cannot be reached, 503 and not 404",
	judge:    judgeNoFalseNotFound,
	pressure: []pressure{skewed, unreachable},
}

func judgeNoFalseNotFound(f *Facts) *tally {
	passedOn := 0
	t, tolerated := f.judgeDenials(func(o *observation) ruling {
		r := f.ruleNotFound(o)
		if (r == rulingRight || r == rulingWrong) && o.skewed() {
			passedOn++
		}
		return r
	}, "it")
	t.fact("skewed operations judged", passedOn)
	t.fact("tolerated while knowledge spread", tolerated)
	return t
}

// judgeDenials holds every operation against a rule about what is said not to exist, as though nobody served what. It also counts those that are
// tolerated.
func (f *Facts) judgeDenials(rule func(*observation) ruling, what string) (t *tally, tolerated int) {
	t = f.timely()
	for _, o := range f.observations {
		r := rule(o)
		if r == rulingTolerated {
			tolerated++
		}
		if t.rule(r) {
			class, cause := circumstance(f.candidates(o, o.situation), o.op.Server)
			t.violation(signature{o.op.Server, class, "404 " + cause}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o, o.situation, answer(o.op)+", as though nobody served "+what)
			})
		}
	}
	return t, tolerated
}

// ruleNotFound rules on one operation that is about a resource.
func (f *Facts) ruleNotFound(o *observation) ruling {
	if o.resource == nil || o.leftLocal() {
		return rulingNone
	}
	return f.ruleDenied(o)
}

// ruleDenied rules on one operation. Ignorance is tolerated for Staleness after a server began to serve what it is about, and after the asked one itself
// became ready.
func (f *Facts) ruleDenied(o *observation) ruling {
	switch {
	case !o.ready || !routed(o.op):
		return rulingNone
	case o.local != claimYes && len(o.capable) == 0:
		if o.local == claimUnknown || len(o.unsure) > 0 {
			return rulingUnknown
		}
		return rulingNone
	case o.local != claimYes && f.ceased(o, o.situation):
		return rulingUnknown
	case o.local != claimYes && f.proxyOff(o.op.Server, o.window):
		return rulingNone
	}
	if illegible(o.op) {
		return rulingUnknown
	}
	denied := resourceNotFound(o.op)
	switch {
	case !f.informed(o, o.situation):
		if denied {
			return rulingTolerated
		}
		return rulingEarly
	case denied && f.ceasing(o):
		return rulingUnknown
	case denied:
		return rulingWrong
	default:
		return rulingRight
	}
}

// ceasing reports whether the asked server itself ceases to serve the resource within Staleness, in its present life: then it may have ceased already. What a
// server serves and what it lists are the work of two controllers, and a document that lists what has just been deleted may be the last that is seen.
func (f *Facts) ceasing(o *observation) bool {
	if o.local != claimYes {
		return false
	}
	end := o.resource.during(o.asked, o.window).to
	span := o.asked.line.at(end)
	return end <= later(o.op.End, f.bounds.Staleness) && span.phase == phaseReady && span.incarnation == o.asked.line.at(o.op.Start).incarnation
}

// informed reports whether the asked server has had the time to learn of some server that serves the resource.
func (f *Facts) informed(o *observation, s situation) bool {
	if o.op.Start < later(s.readySince, f.bounds.Staleness) {
		return false
	}
	if s.local == claimYes && o.op.Start >= later(s.localSince, f.bounds.Staleness) {
		return true
	}
	gone, own := f.gone(o)
	for _, p := range s.capable {
		if own && p.since < gone {
			continue // it may not have noticed yet
		}
		if o.op.Start >= later(f.heard(o, p.server.name, max(p.since, s.readySince)), f.bounds.Staleness) {
			return true
		}
	}
	return false
}

// gone is when the asked server itself ceased to serve the resource in its present life: then somebody has deleted it, and this server may know
// better than those that serve it since before. ok is false if it never did.
func (f *Facts) gone(o *observation) (at history.Time, ok bool) {
	incarnation := o.asked.line.at(o.op.Start).incarnation
	for _, c := range slices.Backward(o.resource.coverage[o.asked.index]) {
		if c.claim == claimYes && c.to <= o.op.End { // perhaps while the request was under way
			return c.to, o.asked.line.at(max(c.from, 0)).incarnation == incarnation
		}
	}
	return 0, false
}

// ceased reports whether the asked server may know better than all that serve the resource: none of them began after it had ceased to.
func (f *Facts) ceased(o *observation, s situation) bool {
	at, own := f.gone(o)
	return own && !slices.ContainsFunc(s.capable, func(p peer) bool { return p.since >= at })
}

// heard is when the asked server can first have heard of a peer that it could have heard of since then: the one tells it, and the other
// hears it, through etcd. A cut that comes when there was time to hear of it excuses nothing.
func (f *Facts) heard(o *observation, peer string, since history.Time) history.Time {
	until := window{since, o.op.Start}
	faults := slices.Concat(f.linkFaults(link{o.op.Server, etcd}, until), f.linkFaults(link{peer, etcd}, until))
	slices.SortStableFunc(faults, faultOrder)
	for _, fault := range faults {
		if fault.Start <= later(since, f.bounds.Staleness) && (fault.Blocks || !delaying[fault.Kind]) {
			since = max(since, fault.End)
		}
	}
	return since
}
