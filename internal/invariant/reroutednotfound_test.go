package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// A peer that gets a forwarded request for a resource that it does not serve must answer 503. Such
// a 503 does not count as a 503 in place of a 404.
func TestReroutedMayBe503(t *testing.T) {
	const name = "TrueNotFound"
	bearing := func(o *history.Operation) { o.Rerouted = true }
	checkStories(t, name, []storyCase{
		{"passed on, and the target does not serve it", tell(name).ask(20, "b", ghosts, 503).hop("b", 0, 10, false).hop("a", 2, 8, true, answering(503)), want{outcome: OutcomePass, checked: 1}},
		{"the client says that it was passed on", tell(name).ask(20, "b", ghosts, 503, bearing), want{outcome: OutcomePass, checked: 1}},
		{"the client says so, and no server believes it", tell(name).ask(20, "b", ghosts, 404, bearing), want{outcome: OutcomePass, checked: 1}},
		{"500 is wrong nevertheless", tell(name).ask(20, "b", ghosts, 500, bearing),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "500 rather than 404"}},
		{"not passed on, by the server's own record", tell(name).ask(20, "b", ghosts, 503).hop("b", 0, 10, false, answering(503)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 rather than 404"}},
		{"nobody told", tell(name).ask(20, "b", gadgets, 503, bearing), want{outcome: OutcomeInconclusive, reason: notExercised}},
	})
}
