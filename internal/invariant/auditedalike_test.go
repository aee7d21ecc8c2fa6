package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// logged is the client's address in a server's log.
func logged(address string) func(*history.Hop) {
	return func(h *history.Hop) { h.Client = address }
}

func TestAuditedAlike(t *testing.T) {
	const (
		name = "AuditedAlike"
		none = "no operation was passed on and logged by both servers"
	)
	asked := func(status int, options ...func(*history.Operation)) *story {
		return tell(name).ask(20, "b", gadgets, status, options...)
	}
	alike := func() *story {
		return asked(200).hop("b", 0, 10, false, answering(200), logged("10.0.0.9")).hop("a", 2, 8, true, answering(200), logged("10.0.0.9"))
	}
	checkStories(t, name, []storyCase{
		{"alike", alike(), want{outcome: OutcomePass, checked: 1, fact: "of these with the client's address: 1"}},
		{"a refusal, alike", asked(403).hop("b", 0, 10, false, answering(403)).hop("a", 2, 8, true, answering(403)),
			want{outcome: OutcomePass, checked: 1, fact: "of these with the client's address: 0"}},
		{"another status at the asked server", asked(200).hop("b", 0, 10, false, answering(500)).hop("a", 2, 8, true, answering(200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the asked server",
				sentence: "The request was handled by b from 20s to 20.01s with 500, a from 20.002s to 20.008s with 200: the client got 200, and b logged another status."}},
		{"a switch of protocols at the asked server", asked(401).hop("b", 0, 10, false, answering(101)).hop("a", 2, 8, true, answering(401)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "101 in the log of the asked server",
				sentence: "the client got 401, and b logged 101, as if it had switched protocols"}},
		{"a switch of protocols that only the client saw", asked(101).hop("b", 0, 10, false, answering(401)).hop("a", 2, 8, true, answering(101)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the asked server"}},
		{"another status at the peer", asked(200).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(404)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the peer",
				sentence: "the client got 200, and a logged another status"}},
		{"another success at the peer", asked(200).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(201)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the peer"}},
		{"another address at the peer", asked(200).hop("b", 0, 10, false, answering(200), logged("10.0.0.9")).hop("a", 2, 8, true, answering(200), logged("10.0.0.2")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another client address in the log of the peer",
				sentence: "b logged that the client is 10.0.0.9, and a that it is 10.0.0.2"}},
		{"another address at one of two peers", asked(200).hop("b", 0, 10, false, answering(200), logged("10.0.0.9")).
			hop("c", 1, 3, true, answering(503), logged("10.0.0.2")).hop("a", 4, 8, true, answering(200), logged("10.0.0.9")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another client address in the log of the peer"}},
		{"one log has no address", asked(200).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200), logged("10.0.0.2")),
			want{outcome: OutcomePass, checked: 1, fact: "of these with the client's address: 0"}},
		{"after a peer that failed", asked(200).hop("b", 0, 10, false, answering(200)).hop("c", 1, 3, true, answering(503)).hop("a", 4, 8, true, answering(200)),
			want{outcome: OutcomePass, checked: 1}},
		{"the client asked twice, as the log shows", asked(200).hop("b", 0, 3, false, answering(429)).hop("b", 4, 10, false, answering(200)).hop("a", 5, 8, true, answering(200)),
			want{outcome: OutcomePass, checked: 1}},
		{"a refusal by the asked server, when the peer could not answer",
			asked(403).hop("b", 0, 10, false, answering(403)).hop("a", 2, 8, true, answering(503)), want{outcome: OutcomeInconclusive, reason: none}},
		{"the same, though a peer answered",
			asked(403).hop("b", 0, 10, false, answering(403)).hop("c", 1, 3, true, answering(503)).hop("a", 4, 8, true, answering(200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the peer"}},
		{"a refusal that the asked server has not logged",
			asked(403).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(503)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the asked server"}},
		{"another answer, when the peer could not answer",
			asked(404).hop("b", 0, 10, false, answering(404)).hop("a", 2, 8, true, answering(503)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another status in the log of the peer"}},
		{"a 503 after the peer's answer was lost", asked(503).hop("b", 0, 10, false, answering(503)).hop("a", 2, 8, true, answering(200)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"a 504 of a filter outside of auditing", asked(504).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"a 499, which is no 5xx", asked(499).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the client got no whole answer", asked(200, failed(history.FailureReset)).hop("b", 0, 10, false, answering(500)).hop("a", 2, 8, true, answering(200)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"the asked server's log is lost", asked(200).hop("a", 2, 8, true, answering(404)),
			want{outcome: OutcomeInconclusive, reason: none, fact: "operations with an incomplete log: 1"}},
		{"the peer's log has no status", asked(200).hop("b", 0, 10, false, answering(200)).hop("a", 2, 2, true),
			want{outcome: OutcomeInconclusive, reason: none, fact: "operations with an incomplete log: 1"}},
		{"the asked server's log has no status", asked(200).hop("b", 0, 0, false).hop("a", 2, 8, true, answering(404)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"it was not passed on", asked(200).hop("b", 0, 10, false, answering(500)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"under too little pressure", alike().need(history.Pressure{Skewed: 2}),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 skewed operations"}},
	})
}
