package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestOnlyTrustedPeers(t *testing.T) {
	const name = "OnlyTrustedPeers"
	const serving, frontProxy = history.DistrustServing, history.DistrustFrontProxy
	distrusting := func(how history.Distrust) *story { return tell(name).distrust(how, "b", "a", 15, 100) }
	// A server gets such a fault by a restart: b is down from 14 to 16.
	restarted := func() *story {
		return tell(name).stop("b", 13).start("b", 15, oldDoc).distrust(serving, "b", "a", 14.5, 50)
	}
	own := func(s *story) *story { return s.hop("b", 0, 10, false, as("jane")) }
	passed := func(s *story, options ...func(*history.Hop)) *story {
		return own(s).hop("a", 2, 8, true, append([]func(*history.Hop){as("jane")}, options...)...)
	}
	checkStories(t, name, []storyCase{
		{"503 if no peer can be trusted", own(distrusting(serving).ask(20, "b", gadgets, 503)),
			want{outcome: OutcomePass, checked: 1, fact: "could have served: 1"}},
		{"404, which other invariants judge", own(distrusting(serving).ask(20, "b", gadgets, 404)),
			want{outcome: OutcomePass, checked: 1}},
		{"passed on nevertheless", passed(distrusting(serving).ask(20, "b", gadgets, 200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "b passed it on to a, whose certificate it cannot trust", sentence: "b from 20s to 20.01s as jane"}},
		{"passed on, and refused by the peer", passed(distrusting(serving).ask(20, "b", gadgets, 401), answering(401)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "cannot trust"}},
		{"passed on, and the asked server's record is lost", distrusting(serving).ask(20, "b", gadgets, 200).hop("a", 2, 8, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"passed on again by a peer over an untrusted link", own(tell(name).distrust(serving, "c", "a", 15, 100).ask(20, "b", gadgets, 200)).hop("c", 1, 9, true).hop("a", 2, 8, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "c passed it on to a"}},
		{"not believed", passed(distrusting(frontProxy).ask(20, "b", gadgets, 503), as(""), answering(401)),
			want{outcome: OutcomePass, checked: 1}},
		{"taken for nobody's", passed(distrusting(frontProxy).ask(20, "b", gadgets, 403), as("system:anonymous"), answering(403)),
			want{outcome: OutcomePass, checked: 1}},
		{"the user is accepted nevertheless", passed(distrusting(frontProxy).ask(20, "b", gadgets, 200), answering(200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a accepted the user from b, whose front-proxy certificate it cannot trust"}},
		{"the user is accepted, and forbidden", passed(distrusting(frontProxy).ask(20, "b", gadgets, 403), answering(403)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the other way is open", passed(tell(name).distrust(serving, "a", "b", 15, 100).ask(20, "b", gadgets, 200)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a cut is not a question of trust", passed(tell(name).cut("b", "a", 15, 100).ask(20, "b", gadgets, 200)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a wrong address is not a question of trust", own(tell(name).fault(history.FaultMisconfiguration, "b", "a", 15, 100, true).ask(20, "b", gadgets, 503)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a link of clients", passed(tell(name).distrust(serving, client, "b", 15, 100).ask(20, "b", gadgets, 200)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"served by itself", own(distrusting(serving).ask(20, "b", widgets, 200)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"sent before the certificate was wrong", passed(restarted().ask(14.45, "b", gadgets, 200, took(5))),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"while the certificate is corrected", passed(distrusting(serving).ask(99.95, "b", gadgets, 200)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"after the certificate was corrected", passed(own(distrusting(serving).ask(20, "b", gadgets, 503)).ask(101, "b", gadgets, 200)),
			want{outcome: OutcomePass, checked: 1}},
		{"passed on before the certificate was corrected, and answered afterwards", passed(distrusting(serving).ask(98, "b", gadgets, 200, took(4))),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"one of two peers can be trusted", own(blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).distrust(serving, "b", "a", 15, 100).
			ask(20, "b", gadgets, 200)).hop("c", 2, 8, true),
			want{outcome: OutcomePass, checked: 1}},
		{"no records", distrusting(serving).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"answered, and recorded only by servers that do not serve it", own(distrusting(serving).ask(20, "b", gadgets, 200)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the server refused to start with it", refusing(tell(name), serving).ask(20, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "refused to start with such a certificate: 1"}},
		{"the server refused to start for another reason", refusing(tell(name), "").ask(20, "b", gadgets, 200),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
	})
}

// refusing makes c refuse to start.
func refusing(s *story, how history.Distrust) *story {
	s.h.Faults = append(s.h.Faults, history.Fault{
		ID: len(s.h.Faults) + 1, Kind: history.FaultMisconfiguration, Server: "c", Distrust: how, Start: sec(15), End: sec(30),
		Evidence: history.Evidence{Refused: 1},
	})
	return s
}
