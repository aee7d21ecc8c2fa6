package invariant

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

var unavailableOnPeerFailure = Invariant{
	Name:    "UnavailableOnPeerFailure",
	Grade:   GradeCore,
	Outside: true,
	Sentence: "A request that only apiservers out of reach could serve is answered 503 (try again later), " +
		"and that within a bounded time; one that only a lost apiserver could, 503 or 404 within that time.",
	Source:   "KEP-4020, Goals: if the apiserver that can serve a request cannot be reached, 503",
	judge:    judgeUnavailable,
	pressure: []pressure{unreachable},
}

func judgeUnavailable(f *Facts) *tally {
	t := f.timely()
	tolerated, contradicted := 0, 0
	var slowest history.Time
	for _, o := range f.observations {
		r, cause := f.ruleUnavailable(o)
		switch {
		case r == rulingTolerated:
			tolerated++
		case r == rulingUnknown && cause != "":
			contradicted++
		case r == rulingRight && o.op.Status == http.StatusServiceUnavailable:
			slowest = max(slowest, o.op.End-o.op.Start)
		}
		if t.rule(r) {
			s := f.situate(o, f.patience(o))
			class, why := circumstance(f.candidates(o, s), o.op.Server)
			t.violation(signature{o.op.Server, class, cause + " " + why}, o.op.End, o.resource.String(), func() Evidence {
				return f.show(o, s, answer(o.op)+" rather than 503 within "+clock(f.bounds.Unavailable))
			})
		}
	}
	if t.verdict.Checked > 0 {
		t.fact("slowest right 503", clock(slowest))
	}
	t.fact("tolerated while knowledge spread", tolerated)
	if contradicted > 0 {
		t.fact("answered although every capable server was out of reach", contradicted)
	}
	return t
}

// ruleUnavailable rules on one operation, and says what is wrong with it. Only what happened until the bound counts: a
// link that healed after that excuses nothing.
//
// An answer that only a server of the resource can give is impossible here: the ground truth or the fault is not what it
// seems, so it is unknown. A connection that was established before cannot explain it, because a blocking fault lets no
// response through on those either.
func (f *Facts) ruleUnavailable(o *observation) (ruling, string) {
	if o.resource == nil || o.leftLocal() || o.op.Failure == history.FailureCanceled {
		return rulingNone, ""
	}
	w := f.patience(o)
	s := o.situation
	if w != o.window {
		s = f.situate(o, w)
	}
	if s.unserved() && len(s.lost) > 0 {
		return f.ruleLost(o, s, w)
	}
	if !s.skewed() || !f.severed(o, s, w) {
		return rulingNone, ""
	}
	if f.ceased(o, s) {
		return rulingUnknown, ""
	}
	for _, u := range s.unsure {
		if r, _ := f.reach(o.op.Server, u.name, w); r != reachClosed && !u.starts(o.resource.key, w) {
			return rulingUnknown, "" // it may serve the resource, and can be reached
		}
	}
	if !f.undisturbed(client, o.op.Server, w) {
		return rulingNone, "" // what the client saw, and when, is the fault's doing
	}
	// Without etcd a server can neither verify tokens, nor authorise by what it has not read yet, nor find its peers.
	if r, _ := f.reach(o.op.Server, etcd, w); r != reachOpen {
		return rulingNone, ""
	}
	late := o.op.End-o.op.Start > f.bounds.Unavailable
	switch status := o.op.Status; {
	case status == 0:
		return f.ruleSilence(o.op, late)
	case !routed(o.op):
		return rulingNone, ""
	case illegible(o.op):
		return rulingUnknown, ""
	case resourceNotFound(o.op):
		if !f.informed(o, s) {
			return rulingTolerated, ""
		}
		return rulingWrong, "404 rather than 503"
	case status == http.StatusServiceUnavailable && late:
		return rulingWrong, "503 too late"
	case status == http.StatusServiceUnavailable:
		return rulingRight, ""
	case status >= 500:
		return rulingWrong, fmt.Sprintf("%d rather than 503", status)
	default:
		return rulingUnknown, fmt.Sprintf("answered %d", status)
	}
}

// ruleLost rules on what only servers have served that were killed, or crashed, and are not back. Whether they come back nobody can know, so that
// 503 and 404 are both right; but nobody may wait for them, nor be kept waiting.
func (f *Facts) ruleLost(o *observation, s situation, w window) (ruling, string) {
	if !f.undisturbed(client, o.op.Server, w) {
		return rulingNone, ""
	}
	if r, _ := f.reach(o.op.Server, etcd, w); r != reachOpen {
		return rulingNone, ""
	}
	late := o.op.End-o.op.Start > f.bounds.Unavailable
	switch status := o.op.Status; {
	case status == 0 && late:
		return rulingWrong, "no answer in time, " + gone(s)
	case status != http.StatusServiceUnavailable && !resourceNotFound(o.op):
		return rulingNone, "" // TrueNotFound rules on that
	case late:
		return rulingWrong, fmt.Sprintf("%d too late, %s", status, gone(s))
	default:
		return rulingRight, ""
	}
}

func gone(s situation) string { return "though " + strings.Join(s.lost, ", ") + " was gone" }

// ruleSilence tells a client that gave up before the bound, which proves nothing, from a server that did not keep it, or
// that broke the connection instead of answering.
func (f *Facts) ruleSilence(op *history.Operation, late bool) (ruling, string) {
	switch {
	case late:
		return rulingWrong, "no answer in time"
	case op.Failure == history.FailureReset:
		return rulingWrong, "connection broken rather than 503"
	default:
		return rulingUnknown, ""
	}
}
