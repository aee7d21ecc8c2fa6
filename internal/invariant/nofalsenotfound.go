package invariant

var noFalseNotFound = Invariant{
	Name:  "NoFalseNotFound",
	Grade: GradeCore,
	Sentence: "No request is told that a resource does not exist (404) while some live apiserver serves it, " +
		"even if that apiserver is paused or cut off.",
	Source:   "KEP-4020, Goals: requests reach an apiserver that can serve them; if it cannot be reached, 503 and not 404",
	judge:    judgeNoFalseNotFound,
	pressure: []pressure{skewed, unreachable},
}

func judgeNoFalseNotFound(f *Facts) *tally {
	t := newTally()
	tolerated, passedOn := 0, 0
	for _, o := range f.observations {
		r := f.ruleNotFound(o)
		if r == rulingTolerated {
			tolerated++
		}
		if (r == rulingRight || r == rulingWrong) && o.skewed() {
			passedOn++
		}
		if t.rule(r) {
			class, cause := circumstance(f.candidates(o, o.situation), o.op.Server)
			t.violation(signature{o.op.Server, class, "404 " + cause}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o, o.situation, answer(o.op)+", as though nobody served it")
			})
		}
	}
	t.fact("skewed operations judged", passedOn)
	t.fact("tolerated while knowledge spread", tolerated)
	return t
}

// ruleNotFound rules on one operation. Ignorance is tolerated for Staleness after a server began to serve the resource,
// and after the asked one itself became ready.
func (f *Facts) ruleNotFound(o *observation) ruling {
	switch {
	case o.resource == nil || !o.ready || !routed(o.op):
		return rulingNone
	case o.local != claimYes && len(o.capable) == 0:
		if o.local == claimUnknown || len(o.unsure) > 0 {
			return rulingUnknown
		}
		return rulingNone
	}
	denied := resourceNotFound(o.op)
	switch {
	case !f.informed(o, o.situation):
		if denied {
			return rulingTolerated
		}
		return rulingEarly
	case denied:
		return rulingWrong
	default:
		return rulingRight
	}
}

// informed reports whether the asked server has had the time to learn of some server that serves the resource.
func (f *Facts) informed(o *observation, s situation) bool {
	if o.op.Start < later(s.readySince, f.bounds.Staleness) {
		return false
	}
	if s.local == claimYes && o.op.Start >= later(s.localSince, f.bounds.Staleness) {
		return true
	}
	for _, p := range s.capable {
		if o.op.Start >= later(p.since, f.bounds.Staleness) {
			return true
		}
	}
	return false
}
