package invariant

import (
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var noFalseNotFound = Invariant{
	Name:    "NoFalseNotFound",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "No apiserver answers 404, as if the resource did not exist, while a live apiserver serves the resource. This " +
		"holds even if the live apiserver is paused or cut off, or was told to stop and still serves.",
	Source: "KEP-4020, Goals: requests reach an apiserver that can serve them; if it cannot be reached, 503 and not 404",
	judge: func(f *Facts) *tally {
		passedOn := 0
		t := f.judgeDenials(func(o *observation) ruling {
			r := f.ruleNotFound(o)
			if r == rulingNone && o.crosses() {
				r = rulingOut
			}
			if (r == rulingRight || r == rulingWrong) && o.skewed() {
				passedOn++
			}
			return r
		}, "it")
		t.fact("skewed operations judged", passedOn)
		t.factTolerated()
		return t
	},
	answers:       servedOrNot,
	everyCrossing: true,
	pressure:      []pressure{skewed, unreachable, subresources},
}

// servedOrNot reports whether an answer either comes from a server of the resource, or denies that
// the resource exists. Media types belong to the first case, because the handler of a resource
// negotiates them, behind routing.
func servedOrNot(op *history.Operation) bool {
	switch op.Status {
	case http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity,
		http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return true
	}
	return op.Status != 0 && op.Status < http.StatusBadRequest
}

// groupVersionsDescribed is for clients that have found a version in merged discovery and then ask
// for the document of that version, as client-go's ServerResourcesForGroupVersion does.
var groupVersionsDescribed = Invariant{
	Name:    "GroupVersionsDescribed",
	Grade:   GradeExtended,
	Outside: true,
	Sentence: "Merged discovery lists a group or version if any live apiserver serves a resource of it. An apiserver that " +
		"serves nothing of it itself must not answer 404 for its discovery document (/apis/GROUP, /apis/GROUP/VERSION).",
	Source: "beyond KEP-4020, whose Summary, note 2, leaves these documents to each apiserver",
	judge: func(f *Facts) *tally {
		t := f.judgeDenials(func(o *observation) ruling {
			if !o.localDocument() {
				return rulingNone
			}
			return f.ruleDenied(o)
		}, "anything of it")
		t.factTolerated()
		return t
	},
}

// judgeDenials applies a rule to 404s for resources that some server serves.
func (f *Facts) judgeDenials(rule func(*observation) ruling, what string) *tally {
	t := newTimedTally(f)
	for _, o := range f.observations {
		if t.rule(o, rule(o)) {
			t.violate(o, *o.situation, "", "404 "+f.reachability(o, *o.situation), answer(o.op)+", as though no server served "+what)
		}
	}
	return t
}

// ruleNotFound rules on one operation that is about a resource.
func (f *Facts) ruleNotFound(o *observation) ruling {
	if o.resource == nil || o.localDocument() {
		return rulingNone
	}
	return f.ruleDenied(o)
}

// ruleDenied rules on one operation. A 404 is tolerated for Staleness after a server began to serve
// the resource and after the asked server became ready.
func (f *Facts) ruleDenied(o *observation) ruling {
	switch {
	case !o.ready || !routed(o.op):
		return rulingNone
	case o.local != claimYes && f.listedMeanwhile(o):
		return rulingUnknown // the 404 is not that of a proxy, and a single server answers it too
	case f.ofNamesake(o), o.unread():
		return rulingUnknown
	case o.local != claimYes && len(o.capable) == 0:
		if o.local == claimUnknown || len(o.unsure) > 0 {
			return rulingUnknown
		}
		return rulingNone
	case o.local != claimYes && f.knowsDeletion(o, *o.situation):
		return rulingUnknown
	case o.local != claimYes && f.proxyOff(o.op.Server, o.window):
		return rulingNone
	case truncated404(o.op):
		return rulingUnknown
	}
	denied, informed := resourceNotFound(o.op), f.informed(o, *o.situation)
	switch {
	case denied && !informed:
		return rulingTolerated
	case !informed:
		return rulingEarly
	case denied && f.ceasing(o):
		return rulingUnknown
	case denied:
		return rulingWrong
	default:
		return rulingRight
	}
}

// ceasing reports whether the asked server stops serving the resource within Staleness, without a
// restart. The server may have stopped already: one controller changes what a server serves and
// another controller changes what it lists. So the last seen document may list a resource that has
// just been deleted.
func (f *Facts) ceasing(o *observation) bool {
	if o.local != claimYes {
		return false
	}
	end := o.resource.during(o.asked, o.window).to
	span := o.asked.line.at(end)
	return end <= later(o.op.End, f.bounds.Staleness) && span.phase == phaseReady &&
		span.incarnation == o.asked.line.at(o.op.Start).incarnation
}

// informed reports whether the asked server has had enough time to learn that some server serves
// the resource.
func (f *Facts) informed(o *observation, s situation) bool {
	if o.op.Start < later(s.readySince, f.bounds.Staleness) {
		return false
	}
	if s.local == claimYes && o.op.Start >= later(s.localSince, f.bounds.Staleness) {
		return true
	}
	ceased, own := f.ceasedAt(o)
	return slices.ContainsFunc(s.capable, func(p peer) bool {
		deleting := own && p.since < ceased // this peer may not have noticed the deletion yet
		return !deleting && o.op.Start >= later(f.couldHear(o, p.server.name, max(p.since, s.readySince)), f.bounds.Staleness)
	})
}

// ceasedAt is the time at which the present process of the asked server stopped serving the
// resource. The resource was deleted, and this server may know that before other servers do. ok is
// false if there is no such time.
func (f *Facts) ceasedAt(o *observation) (at history.Time, ok bool) {
	incarnation := o.asked.line.at(o.op.Start).incarnation
	for _, c := range slices.Backward(o.resource.coverage[o.asked.index]) {
		if c.claim == claimYes && c.to <= o.op.End { // perhaps during the request
			return c.to, o.asked.line.at(max(c.from, 0)).incarnation == incarnation
		}
	}
	return 0, false
}

// knowsDeletion reports whether the asked server may know that the resource was deleted, while the
// servers that still serve it do not know. It is true if no capable server began to serve the
// resource after the asked server stopped.
func (f *Facts) knowsDeletion(o *observation, s situation) bool {
	at, own := f.ceasedAt(o)
	return own && !slices.ContainsFunc(s.capable, func(p peer) bool { return p.since >= at })
}

// couldHear is the time at which the asked server could first learn about a peer that has existed
// since the given time. The peer announces itself through etcd. So a cut between etcd and either
// server delays the announcement, unless there was enough time before the cut.
func (f *Facts) couldHear(o *observation, peer string, since history.Time) history.Time {
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
