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
	Sentence: "A request that only unreachable apiservers could serve is answered 503 (try again later) within a bounded time. " +
		"If only killed or crashed apiservers could serve it, 404 within that time is right too.",
	Source:   "KEP-4020, Goals: if the apiserver that can serve a request cannot be reached, 503",
	judge:    judgeUnavailable,
	answers:  anyAnswer,
	pressure: []pressure{unreachable},
}

func judgeUnavailable(f *Facts) *tally {
	t := newTimedTally(f)
	contradicted := 0
	var slowest history.Time
	for _, o := range f.observations {
		r, cause := f.ruleUnavailable(o)
		switch {
		case r == rulingUnknown && cause != "":
			contradicted++
		case r == rulingRight && o.op.Status == http.StatusServiceUnavailable:
			slowest = max(slowest, o.op.End-o.op.Start)
		}
		if t.rule(o, r) {
			s := f.situate(o, f.untilBound(o))
			wrong, _, _ := strings.Cut(cause, " after ") // cause names the lost servers
			t.violate(o, s, wrong, strings.TrimSpace(cause+" "+f.reachability(o, s)),
				answer(o.op)+" rather than 503 within "+clock(f.bounds.Unavailable))
		}
	}
	if t.verdict.Checked > 0 {
		t.fact("slowest right 503", clock(slowest))
	}
	t.factTolerated()
	if contradicted > 0 {
		t.fact("answered although every capable server was out of reach", contradicted)
	}
	return t
}

// ruleUnavailable rules on one operation and says what is wrong with it. Events after the bound,
// such as the healing of a link, do not matter.
//
// If only a server of the resource can give the response, the operation is unjudgeable, because the
// ground truth or the fault is not what the history says. An older connection cannot explain the
// response, because a blocking fault lets no response through on any connection.
func (f *Facts) ruleUnavailable(o *observation) (ruling, string) {
	if o.resource == nil || o.localDocument() || o.op.Failure == history.FailureCanceled || f.proxyOff(o.op.Server, o.window) {
		return rulingNone, "" // a server without a proxy knows of no peer, whatever happens to links
	}
	w := f.untilBound(o)
	s := *o.situation
	if w != o.window {
		s = f.situate(o, w)
	}
	lost := s.unserved() && len(s.lost) > 0
	if !lost {
		if !s.skewed() || !f.cutOff(o, s, w) {
			return rulingNone, ""
		}
		if f.knowsDeletion(o, s) {
			return rulingUnknown, ""
		}
		for _, u := range s.unsure {
			if r, _ := f.reach(o.op.Server, u.name, w); r != reachClosed && !u.surelyLacks(o.resource.key, w) {
				return rulingUnknown, "" // this server may serve the resource, and it can be reached
			}
		}
	}
	if !f.undisturbed(client, o.op.Server, w) || !f.hasEtcd(o, w) {
		return rulingOut, "" // another fault may have caused the client's result
	}
	late := o.op.End-o.op.Start > f.bounds.Unavailable
	if lost {
		return ruleLost(o.op, late, " after "+strings.Join(s.lost, ", ")+" was lost")
	}
	switch status := o.op.Status; {
	case status == 0 && late:
		return rulingWrong, "no answer in time"
	case status == 0 && o.op.Failure == history.FailureReset:
		return rulingWrong, "connection broken rather than 503"
	case status == 0: // the client stopped waiting before the bound
		return rulingUnknown, ""
	case !routed(o.op):
		return rulingOut, ""
	case truncated404(o.op):
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

// ruleLost rules on an operation that could be served only by servers that were killed or crashed
// and are not back. It is unknown whether they will come back, so 503 and 404 are both right, but
// they must come in time.
func ruleLost(op *history.Operation, late bool, after string) (ruling, string) {
	switch {
	case op.Status == 0 && late:
		return rulingWrong, "no answer in time" + after
	case op.Status != http.StatusServiceUnavailable && !resourceNotFound(op):
		return rulingNone, "" // TrueNotFound rules on this
	case late:
		return rulingWrong, fmt.Sprintf("%d too late%s", op.Status, after)
	default:
		return rulingRight, ""
	}
}
