package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestTrueNotFound(t *testing.T) {
	const name = "TrueNotFound"
	checkStories(t, name, []storyCase{
		{"what nobody serves is 404", tell(name).askEvery(20, 24, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 5}},
		{"404 is right at any time", tell(name).stop("c", 20).ask(21.5, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1}},
		{"a subresource that nobody has", tell(name).ask(20, "b", pods, 404, sub("nosuch"), missingObject),
			want{outcome: OutcomePass, checked: 1}},
		{"503 when all is known", tell(name).ask(20, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 rather than 404", sentence: "no apiserver serves that"}},
		{"503 soon after a server has come", tell(name).stop("c", 20).start("c", 25, oldDoc).ask(30, "b", ghosts, 503).ask(60, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, fact: "not known: 1"}},
		{"503 long after a server has come", tell(name).stop("c", 20).start("c", 25, oldDoc).ask(37, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while a live peer is cut off", tell(name).cut("b", "c", 20, 100).ask(60, "b", ghosts, 503).ask(150, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, fact: "not known: 1"}},
		{"503 soon after a live peer was paused", tell(name).pause("c", 20, 50).ask(55, "b", ghosts, 503).ask(150, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, fact: "not known: 1"}},
		{"503 while a killed server's leases stand", tell(name).kill("c", 20).ask(60, "b", ghosts, 503).ask(61, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, fact: "not known: 1"}},
		{"503 long after a killed server has come back", tell(name).kill("c", 20).start("c", 25, oldDoc).ask(60, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while a link of others is cut", tell(name).cut("a", "c", 20, 100).ask(60, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 while the links to the asked server itself are cut", tell(name).cut("", "b", 20, 100).ask(60, "b", ghosts, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 long after the one that served it has left", tell(name).stop("a", 20).ask(60, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 long after the one that served it was killed: it may come back", tell(name).kill("a", 20).ask(60, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"503 while a server's document changes, nobody knows when", tell(name).changed("a", 20, 80, oldDoc).ask(60, "b", ghosts, 503).ask(150, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1}},
		{"500", tell(name).ask(20, "b", ghosts, 500),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "500 rather than 404"}},
		{"200 for what nobody serves", tell(name).ask(20, "b", ghosts, 200),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "200 rather than 404"}},
		{"200 just before the ground truth shows it", tell(name).ask(20, "b", ghosts, 200).served("a", 21, doc("ghostly", line(pods), line(ghosts))),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "not known"}},
		{"refused before it was routed", tell(name).ask(20, "b", ghosts, 403).ask(20, "b", ghosts, 429),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"no answer", tell(name).ask(20, "b", ghosts, 0, failed(history.FailureTimeout)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"one server's document is not known", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).startUnknown("c", 0).ask(20, "b", ghosts, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "not known"}},
		{"no life cycle was recorded", blank(name).served("a", 1, newDoc).served("b", 1, oldDoc).served("c", 1, oldDoc).ask(20, "b", ghosts, 404),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"half of it is known", tell(name).ask(20, "b", ghosts, 404).stop("c", 30).startUnknown("c", 33).ask(50, "b", ghosts, 404),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"too few", tell(name).need(history.Pressure{Unserved: 2}).ask(20, "b", ghosts, 404),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 operations on resources that nobody serves"}},
	})
}
