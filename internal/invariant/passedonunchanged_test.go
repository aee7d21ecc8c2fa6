package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestPassedOnUnchanged(t *testing.T) {
	const name = "PassedOnUnchanged"
	asked := func() *story { return tell(name).ask(20, "b", gadgets, 200).hop("b", 0, 10, false) }
	shorter := asking("query: without limit=5")
	checkStories(t, name, []storyCase{
		{"as it was sent", asked().hop("a", 2, 8, true),
			want{outcome: OutcomePass, checked: 1, fact: "operations passed on: 1"}},
		{"altered", asked().hop("a", 2, 8, true, shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it was altered before it reached a (query)",
				sentence: "The request was handled by b from 20s to 20.01s, a from 20.002s to 20.008s: it was altered before it reached a (query: without limit=5)."}},
		{"altered, as one word says", asked().hop("a", 2, 8, true, asking("body")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it was altered before it reached a (body)"}},
		{"the order of the records does not matter", tell(name).ask(20, "b", gadgets, 200).hop("a", 2, 8, true, shorter).hop("b", 0, 10, false),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"altered at the second attempt", asked().hop("c", 1, 4, true).hop("a", 5, 9, true, shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "altered before it reached a"}},
		{"altered at both attempts, which is one request", asked().hop("c", 1, 4, true, shorter).hop("a", 5, 9, true, asking("body")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it was altered before it reached c (query)"}},
		{"altered, and refused", tell(name).ask(20, "b", gadgets, 400).hop("b", 0, 10, false).hop("a", 2, 8, true, shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"altered, and it is known by which server", asked().hop("a", 2, 8, true, passedBy("b"), shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"altered, and passed on to itself", asked().hop("b", 2, 8, true, shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "altered before it reached b"}},
		{"altered, and passed on to itself, as only that server recorded", asked().hop("b", 2, 8, false, passedBy("b"), shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "altered before it reached b"}},
		{"altered, and the asked server's record is lost", tell(name).ask(20, "b", gadgets, 200).hop("a", 2, 8, true, shorter),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"as it was sent, though the first server says that the client sent something else",
			tell(name).ask(20, "b", gadgets, 200).hop("b", 0, 10, false, shorter).hop("a", 2, 8, true),
			want{outcome: OutcomePass, checked: 1}},
		{"some of those that were passed on", asked().hop("a", 2, 8, true).ask(21, "b", gadgets, 200).hop("b", 0, 10, false).hop("a", 2, 8, true, shorter),
			want{outcome: OutcomeFail, checked: 2, violations: 1, fact: "operations passed on: 2"}},
		{"altered on the way to the asked server, before any server passed it on", tell(name).ask(20, "b", gadgets, 200).hop("b", 0, 10, false, shorter),
			want{outcome: OutcomeInconclusive, reason: "no operation was handled by a second server"}},
		{"nothing was passed on", asked(),
			want{outcome: OutcomeInconclusive, reason: "no operation was handled by a second server"}},
		{"under too little pressure", asked().hop("a", 2, 8, true).need(history.Pressure{Skewed: 2}),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 skewed operations"}},
	})
}

// Similar violations are shown once, whatever the values are. The simulator distinguishes its
// findings by the cause.
func TestWhatWasAlteredIsGroupedByItsPart(t *testing.T) {
	s := tell()
	for _, what := range []string{"query: without limit=5", "query: without limit=6", "path: /x rather than /y"} {
		s.ask(20, "b", gadgets, 200).hop("b", 0, 10, false).hop("a", 2, 8, true, asking(what))
	}
	if v := verdictOf(t, s.h, "PassedOnUnchanged"); v.Violations != 3 || len(v.Evidence) != 2 || v.Evidence[0].Count != 2 {
		t.Errorf("%d violations of %d kinds: %+v", v.Violations, v.Kinds, v.Evidence)
	}
}
