package invariant

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestNoLoop(t *testing.T) {
	const name = "NoLoop"
	asked := func() *story { return tell(name).ask(20, "b", gadgets, 200) }
	// b asks a, which is paused or not, gives up, and asks c. a handles the request 10 s after b got
	// it.
	late := func(s *story, options ...func(*history.Hop)) *story {
		return s.ask(20, "b", gadgets, 200, took(12)).hop("b", 0, 12_000, false, answering(200)).
			hop("c", 9400, 11_900, true, answering(200)).hop("a", 10_000, 10_001, true, options...)
	}
	twice := want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passed on twice (b→c→a)"}
	checkStories(t, name, []storyCase{
		{"passed on once", asked().hop("b", 0, 10, false).hop("a", 2, 8, true),
			want{outcome: OutcomePass, checked: 1, fact: "operations passed on: 1"}},
		{"the order of the records does not matter", asked().hop("a", 2, 8, true).hop("b", 0, 10, false),
			want{outcome: OutcomePass, checked: 1}},
		{"passed on twice", asked().hop("b", 0, 10, false).hop("c", 1, 9, true).hop("a", 2, 8, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passed on twice (b→c→a)", sentence: "b from 20s to 20.01s, c from"}},
		{"to itself", asked().hop("b", 0, 10, false).hop("b", 1, 9, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "came back to b (b→b)"}},
		{"there and back", asked().hop("b", 0, 10, false).hop("c", 1, 9, true).hop("b", 2, 8, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "came back to b (b→c→b)"}},
		{"a failover is one hop each", asked().hop("b", 0, 10, false).hop("c", 1, 4, true).hop("a", 5, 9, true),
			want{outcome: OutcomePass, checked: 1}},
		{"a failover from a peer that is still busy", asked().hop("b", 0, 10, false).hop("c", 1, 500, true).hop("a", 5, 9, true),
			want{outcome: OutcomePass, checked: 1}},
		{"hedged: both peers at once", asked().hop("b", 0, 10, false).hop("c", 1, 6, true).hop("a", 3, 9, true),
			want{outcome: OutcomePass, checked: 1}},
		{"sent again by the client", asked().hop("b", 0, 3, false).hop("b", 4, 10, false).hop("a", 5, 9, true),
			want{outcome: OutcomePass, checked: 1, fact: "sent again by the client: 1"}},
		{"sent again while the first try is still under way", asked().hop("b", 0, 10, false).hop("a", 1, 9, true).hop("b", 2, 8, false).hop("a", 3, 7, true),
			want{outcome: OutcomePass, checked: 1, fact: "sent again by the client: 1"}},
		{"the asked server's record is lost", asked().hop("a", 2, 8, true),
			want{outcome: OutcomePass, checked: 1}},
		{"the asked server's record is lost, and a peer passed it on", asked().hop("c", 2, 8, true).hop("a", 3, 7, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passed on twice (b→c→a)"}},
		{"the same record twice", asked().hop("b", 0, 10, false).hop("a", 2, 8, true).hop("a", 2, 8, true),
			want{outcome: OutcomePass, checked: 1}},
		{"two attempts, the first still busy when the second has answered; the senders are known",
			asked().hop("b", 0, 30, false).hop("c", 1, 29, true, passedBy("b")).hop("a", 10, 15, true, passedBy("b")),
			want{outcome: OutcomePass, checked: 1}},
		{"passed on by a peer that stops waiting before the next has answered; the senders are known",
			asked().hop("b", 0, 30, false).hop("c", 1, 5, true, passedBy("b")).hop("a", 2, 15, true, passedBy("c")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passed on twice (b→c→a)"}},
		{"passed on by a peer that was killed right afterwards",
			asked().hop("b", 0, 30, false).hop("c", 1, 1, true, passedBy("b")).hop("a", 1, 15, true, passedBy("c")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passed on twice (b→c→a)"}},
		{"passed on by a peer whose record is lost", asked().hop("b", 0, 30, false).hop("a", 2, 15, true, passedBy("c")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "passed on twice (b→c→a)"}},
		{"passed back by a peer whose record is lost", asked().hop("b", 0, 30, false).hop("b", 2, 15, true, passedBy("c")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "came back to b (b→c→b)"}},
		{"passed on by the asked server, whose record is lost", asked().hop("a", 2, 15, true, passedBy("b")),
			want{outcome: OutcomePass, checked: 1}},
		{"passed on by the asked server each time that the client sent it",
			asked().hop("b", 0, 30, false).hop("a", 1, 29, true, passedBy("b")).hop("b", 2, 20, false).hop("a", 3, 25, true, passedBy("b")),
			want{outcome: OutcomePass, checked: 1, fact: "sent again by the client: 1"}},
		{"handled late by a peer that was paused", late(tell(name).pause("a", 18, 29.5)), want{outcome: OutcomePass, checked: 1}},
		{"the same, but the peer answered", late(tell(name).pause("a", 18, 29.5), answering(200)), twice},
		{"handled late by a peer that was not paused", late(tell(name)), twice},
		{"that was paused long before it handled the request", late(tell(name).pause("a", 18, 24.5)), twice},
		{"that was paused before the request only", late(tell(name).pause("a", 10, 19)), twice},
		{"of which another was paused", late(tell(name).pause("c", 21, 29)), twice},
		{"back at the asked server, which was paused",
			tell(name).pause("b", 21, 29.5).ask(20, "b", gadgets, 200, took(12)).hop("b", 0, 12_000, false).hop("b", 10_000, 10_001, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "came back to b (b→b)"}},
		{"two operations with one ID, so that the records belong to either",
			asked().hop("b", 0, 10, false).hop("a", 2, 8, true).ask(20, "c", gadgets, 200, func(o *history.Operation) { o.ID = "op-0000" }).hop("c", 1, 9, false).hop("a", 3, 7, true),
			want{outcome: OutcomeInconclusive, reason: "no operation was handled by a second server"}},
		{"nothing was passed on", asked().hop("b", 0, 10, false),
			want{outcome: OutcomeInconclusive, reason: "no operation was handled by a second server"}},
		{"no audit logs", asked(),
			want{outcome: OutcomeInconclusive, reason: "second server", fact: "that no server has recorded: 1"}},
	})
}

// If nothing stops a request in a loop, it makes thousands of hops until its client gives up.
func TestAWayWithoutEndIsToldInAFewWords(t *testing.T) {
	s := tell("NoLoop").ask(20, "a", ghosts, 0, failed(history.FailureTimeout), took(5))
	for i := range 2000 {
		s.hop([]string{"a", "b"}[i%2], i, 4999-i, i > 0)
	}
	v := verdictOf(t, s.h, "NoLoop")
	if len(v.Evidence) != 1 {
		t.Fatalf("evidence: %v", v.Evidence)
	}
	if e := v.Evidence[0]; !strings.Contains(e.Sentence, "and 1992 times more") || !strings.Contains(e.Cause, "it came back to a (a→b→a)") || len(e.Sentence)+len(e.Cause) > 1500 {
		t.Errorf("%d bytes: %.300s", len(e.Sentence)+len(e.Cause), e.Sentence)
	}
}
