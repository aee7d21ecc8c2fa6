package invariant

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/skewproof/skewproof/internal/history"
)

var auditedAlike = Invariant{
	Name:  "AuditedAlike",
	Grade: GradeExtended,
	Sentence: "If a request is passed on and gets an answer that is not a 5xx, both apiservers log the status of this answer, and the other " +
		"apiserver logs the same client address as the asked one.",
	Source: "beyond KEP-4020, which does not mention auditing; Kubernetes' documentation of auditing: the audit log answers what happened, " +
		"who initiated it, and from where it was initiated",
	judge:    judgeAuditedAlike,
	pressure: []pressure{skewed, passedOn},
}

// judgeAuditedAlike leaves out a 5xx: the asked server may have made it itself after the peer's
// answer, and its filters outside of auditing may have made it after the asked server's record. It
// also leaves out a 403 if no peer answered with less than a 5xx: then the asked server refused the
// user itself.
func judgeAuditedAlike(f *Facts) *tally {
	t := newTally(f)
	incomplete, addresses := 0, 0
	for o := range f.identified() {
		if !o.forwarded() || o.op.Failure != history.FailureNone || o.op.Status >= http.StatusInternalServerError {
			continue
		}
		asked, peers := o.records()
		if len(asked) == 0 || slices.ContainsFunc(o.hops, func(h history.Hop) bool { return h.Status == 0 }) {
			incomplete++
			t.rule(o, rulingOut)
			continue
		}
		answered := slices.ContainsFunc(peers, func(h history.Hop) bool { return h.Status < http.StatusInternalServerError })
		if !answered && o.op.Status == http.StatusForbidden && anyWith(asked, http.StatusForbidden) {
			t.rule(o, rulingOut)
			continue
		}
		r, wrong, what := rulingRight, "", ""
		client := asked[0].Client
		switch stranger := slices.IndexFunc(peers, func(h history.Hop) bool { return client != "" && h.Client != "" && h.Client != client }); {
		case !anyWith(asked, o.op.Status) && anyWith(asked, http.StatusSwitchingProtocols):
			r, wrong = rulingWrong, "101 in the log of the asked server"
			what = fmt.Sprintf("the client got %d, and %s logged 101, as if it had switched protocols", o.op.Status, asked[0].Server)
		case !anyWith(asked, o.op.Status):
			r, wrong = rulingWrong, "another status in the log of the asked server"
			what = fmt.Sprintf("the client got %d, and %s logged another status", o.op.Status, asked[0].Server)
		case !anyWith(peers, o.op.Status):
			r, wrong = rulingWrong, "another status in the log of the peer"
			what = fmt.Sprintf("the client got %d, and %s logged another status", o.op.Status, peers[0].Server)
		case stranger >= 0:
			r, wrong = rulingWrong, "another client address in the log of the peer"
			what = fmt.Sprintf("%s logged that the client is %s, and %s that it is %s",
				asked[0].Server, client, peers[stranger].Server, peers[stranger].Client)
		case client != "":
			addresses++
		}
		t.ruleHops(r, o, withStatus, wrong, wrong, what)
	}
	if t.verdict.Checked == 0 {
		t.doubt("no operation was passed on and logged by both servers")
	}
	t.fact("operations that both servers logged", t.verdict.Checked)
	t.fact("of these with the client's address", addresses)
	t.fact("operations with an incomplete log", incomplete)
	return t
}

// records returns the hops at the server that the client asked, and those at peers.
func (o *observation) records() (asked, peers []history.Hop) {
	for _, h := range o.hops {
		if atPeer(o.op, h) {
			peers = append(peers, h)
		} else {
			asked = append(asked, h)
		}
	}
	return asked, peers
}

func anyWith(hops []history.Hop, status int) bool {
	return slices.ContainsFunc(hops, func(h history.Hop) bool { return h.Status == status })
}
