package invariant

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// answeredAlike rules on the answers to requests that had to cross, if no other invariant rules on
// them. The reference is the answers of servers that serve the resource themselves.
var answeredAlike = Invariant{
	Name:    "AnsweredAlike",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "If only other apiservers can serve a request, the answer has the same kind as the answer of an apiserver that " +
		"serves the resource itself, for the same user, verb, resource, media types and transport.",
	Source: "KEP-4020, Goals: a request is handled by an apiserver that can serve it, whichever is asked; Proxy transport between " +
		"apiservers and authn: it is handled there as the request of the user who sent it",
	judge:    judgeAnsweredAlike,
	answers:  anyAnswer,
	unknown:  "no server that serves the resource was asked the same",
	pressure: []pressure{skewed},
}

func judgeAnsweredAlike(f *Facts) *tally {
	t := newTimedTally(f)
	direct := f.directAnswers()
	crossed := f.crossedAnswers()
	unruled, excused := map[string]int{}, map[string]int{}
	for _, o := range f.observations {
		r, why := f.ruleAlike(o, direct, crossed)
		switch r {
		case rulingUnknown:
			unruled[class(o.op)]++
		case rulingTolerated:
			excused[why]++
		}
		if t.rule(o, r) {
			such := ""
			if d := direct.byForm[formOf(o.op)]; d != nil {
				such = "; to such requests they gave " + d.words()
			}
			t.violate(o, *o.situation, why, why+" "+f.reachability(o, *o.situation), answer(o.op)+authentication(o.hops)+", "+why+such)
		}
	}
	t.fact("kinds of requests that servers answered directly", len(direct.byForm))
	for _, class := range slices.Sorted(maps.Keys(unruled)) {
		t.fact("answered "+class+", and no server that serves it was asked", unruled[class])
	}
	for _, why := range slices.Sorted(maps.Keys(excused)) {
		t.fact("not held against a server: "+why, excused[why])
	}
	return t
}

// ruleAlike rules on one answer. It also returns what is wrong with the answer, or why it is
// tolerated.
func (f *Facts) ruleAlike(o *observation, direct *directAnswers, crossed map[form]*answers) (ruling, string) {
	if !f.ruledHere(o) {
		return rulingNone, ""
	}
	if f.knowsDeletion(o, *o.situation) {
		return rulingUnknown, ""
	}
	got := class(o.op)
	switch {
	case truncated404(o.op), got == classRefused && o.op.Failure != history.FailureNone: // the body, which says who refuses, was cut off
		return rulingUnknown, ""
	case got == classUnauthenticated && f.strangerToExtensions(o):
		return rulingUnknown, ""
	case got == classUnauthenticated, got == classThrottled:
		return f.ruleInTime(o, direct, got)
	case got == classRefused:
		return f.ruleRefusal(o, direct)
	case o.op.Status == http.StatusSwitchingProtocols && f.halfMade(o):
		return rulingWrong, "101 and then no stream"
	}
	to := formOf(o.op)
	if f.beingDefined(o) {
		return rulingTolerated, "its definition was changing"
	}
	return ruleForm(to, got, direct.byForm[to], crossed[to])
}

// strangerToExtensions reports whether the request is for an aggregated API, and the front-proxy
// certificate of the asked server may not be trusted then. The extension apiserver refuses this
// server as peers do, and nothing is passed on.
func (f *Facts) strangerToExtensions(o *observation) bool {
	return f.aggregatedDistrusting(o, func(server string) bool { return server == o.op.Server }, o.window)
}

// ruledHere reports whether this invariant has to rule on the answer: the request had to cross, and
// no other invariant rules on such an answer.
func (f *Facts) ruledHere(o *observation) bool {
	if !o.crosses() || !o.skewed() || f.proxyOff(o.op.Server, o.window) {
		return false
	}
	_, decided := decision(o.op)
	switch status := o.op.Status; {
	case o.op.Failure == history.FailureCanceled:
		return false
	case status == 0, status >= http.StatusInternalServerError: // Available, ProxiedSucceed, UnavailableOnPeerFailure
		return false
	case resourceNotFound(o.op): // NoFalseNotFound
		return false
	case status == http.StatusForbidden: // AuthorizedAlike rules on the authorizer's word about this user
		return !decided
	}
	return true
}

// several is the number of answers of one form that are needed to tell apart two kinds of answers:
// those that depend on the objects and those that depend on the server.
const several = 10

// ruleForm rules on an answer that does not depend on its user.
func ruleForm(to form, got string, direct, crossed *answers) (ruling, string) {
	switch {
	case direct == nil:
		return rulingUnknown, ""
	case direct.class[got] > 0:
		return rulingRight, ""
	case to.contentUnknown() && (got == "400" || got == "415" || got == "422"):
		return rulingUnknown, ""
	}
	wrong := got + " where servers that serve it " + direct.doing(to)
	if !to.dependent(got) || !direct.has(to.dependent) {
		if only := direct.class["406"] == direct.all; only && got == "200" {
			return rulingNone, "" // AnsweredInKind
		}
		return rulingWrong, wrong
	}
	if to.verb == "create" && succeeds(got) && direct.has(succeeds) {
		return rulingWrong, wrong
	}
	if direct.all >= several && crossed.class[got] >= several && crossed.class[got] == crossed.all {
		return rulingWrong, wrong
	}
	return rulingRight, ""
}

// ruleRefusal rules on a 403 in which the authorizer does not speak about this user: the 403 comes
// from an admission plugin, or is about another user. Such a 403 depends on the user who asks.
func (f *Facts) ruleRefusal(o *observation, direct *directAnswers) (ruling, string) {
	refused, known := direct.refused[permissionOf(o)]
	switch {
	case !known:
		return rulingUnknown, ""
	case refused:
		return rulingRight, ""
	}
	return rulingWrong, "403 where servers that serve it give this user another answer"
}

// ruleInTime rules on an answer that depends on the time: the user is not authenticated, or the
// server has too much to do. Credentials expire and load ends. So the only answers that count are
// those that the asked server, and the servers that serve the resource, gave to the same user
// within Staleness.
func (f *Facts) ruleInTime(o *observation, direct *directAnswers, got string) (ruling, string) {
	w := o.window.widen(f.bounds.Staleness)
	if !f.haveEtcd(o, w) {
		return rulingTolerated, "without etcd a server cannot verify tokens" // nor fill a watch cache
	}
	known := false
	for _, other := range direct.byUser[o.op.User] {
		asked := other.asked == o.asked || slices.ContainsFunc(o.capable, func(p peer) bool { return p.server == other.asked })
		if !asked || !other.window.overlaps(w) {
			continue
		}
		if class(other.op) == got {
			return rulingRight, ""
		}
		known = true
	}
	if !known {
		return rulingUnknown, ""
	}
	return rulingWrong, got + " where servers give this user other answers at that time"
}

// haveEtcd reports whether etcd was reachable without impairment from the asked server and from the
// servers that serve the resource.
func (f *Facts) haveEtcd(o *observation, w window) bool {
	return f.hasEtcd(o, w) && !slices.ContainsFunc(f.handlers(o), func(s *server) bool {
		r, _ := f.reach(s.name, etcd, w)
		return r != reachOpen
	})
}

// beingDefined reports whether a server began or stopped to serve the resource within Staleness.
// While a custom resource is being defined or deleted, its server refuses some verbs
// (k8s.io/apiextensions-apiserver, pkg/apiserver/customresource_handler.go: 405 for a creation
// while the definition is terminating). Built-in resources appear and disappear only with the
// process.
func (f *Facts) beingDefined(o *observation) bool {
	if builtIn(o.op.GVR.Group) {
		return false
	}
	w := o.window.widen(f.bounds.Staleness)
	return slices.ContainsFunc(o.capable, func(p peer) bool {
		return p.since > w.from || o.resource.during(p.server, o.window).to < w.to
	})
}

// halfMade reports whether an upgraded connection ended within watchBegins and carried nothing,
// although nothing was disturbed and the connection was meant to last longer. WatchesLast rules on
// watches of built-in resources.
func (f *Facts) halfMade(o *observation) bool {
	if _, ruled := f.ruleWatch(o); ruled != "" || f.run.External {
		return false
	}
	timeout, ok := established(o.op)
	return ok && o.op.Events == 0 && o.op.End-o.op.Start < min(watchBegins, timeout-settle) &&
		o.op.Failure != history.FailureTimeout && f.unaffected(o) && !f.beingDefined(o)
}

// authentication lists for people the servers that did not know the user.
func authentication(hops []history.Hop) string {
	var words []string
	for _, h := range hops[:min(len(hops), mostHops)] {
		if h.Unauthenticated != "" {
			words = append(words, fmt.Sprintf("%s answered %d: %s", h.Server, h.Status, h.Unauthenticated))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, "; ") + ")"
}
