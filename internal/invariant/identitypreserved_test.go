package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestIdentityPreserved(t *testing.T) {
	const name = "IdentityPreserved"
	asked := func() *story { return tell(name).ask(20, "b", gadgets, 200, by("admin")) }
	acting := func(status int) *story { // admin sends it as joe
		return tell(name).ask(20, "b", gadgets, status, by("joe"), func(o *history.Operation) { o.Impersonator = "admin" })
	}
	checkStories(t, name, []storyCase{
		{"the same user at both servers", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("admin")),
			want{outcome: OutcomePass, checked: 1, fact: "operations passed on: 1"}},
		{"the order of the records does not matter", asked().hop("a", 2, 8, true, as("admin")).hop("b", 0, 10, false, as("admin")),
			want{outcome: OutcomePass, checked: 1}},
		{"different users of different operations", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("admin")).
			ask(21, "b", gadgets, 200, by("reader")).hop("b", 0, 10, false, as("reader")).hop("a", 2, 8, true, as("reader")),
			want{outcome: OutcomePass, checked: 2, fact: "users whose operations were passed on: 2"}},
		{"carried out as the server that passed it on", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("front-proxy-client")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took admin for front-proxy-client",
				sentence: "b was asked at 20s by admin: list apps/v2/gadgets (/apps/v2/gadgets). The request was handled by b from 20s to 20.01s as admin, a from"}},
		{"carried out as anonymous", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("system:anonymous")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took admin for system:anonymous"}},
		{"carried out as the user of the request before", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("admin")).
			ask(21, "b", gadgets, 200, by("reader")).hop("b", 0, 10, false, as("reader")).hop("a", 2, 8, true, as("admin")),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "a took reader for admin"}},
		{"refused as another", asked().hop("b", 0, 10, false, as("admin"), answering(403)).hop("a", 2, 8, true, as("reader"), answering(403)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took admin for reader"}},
		{"the asked server takes the user for another, and tells the peer so", asked().hop("b", 0, 10, false, as("reader")).hop("a", 2, 8, true, as("reader")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "b took admin for reader"}},
		{"the asked server takes the user for another, and serves the request itself", asked().hop("b", 0, 10, false, as("reader")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "b took admin for reader"}},
		{"the second attempt is made as another", asked().hop("b", 0, 10, false, as("admin")).hop("c", 1, 4, true, as("admin")).hop("a", 5, 9, true, as("reader")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took admin for reader"}},
		{"passed on to itself as another", asked().hop("b", 0, 10, false, as("admin")).hop("b", 1, 9, true, as("reader")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "b took admin for reader"}},
		{"passed on to itself", asked().hop("b", 0, 10, false, as("admin")).hop("b", 1, 9, true, as("admin")),
			want{outcome: OutcomePass, checked: 1}}, // NoLoop rules on this
		{"a first attempt without a user", asked().hop("b", 0, 10, false, as("admin")).hop("c", 1, 4, true).hop("a", 5, 9, true, as("admin")),
			want{outcome: OutcomePass, checked: 1}},
		{"the asked server's record is lost", asked().hop("a", 2, 8, true, as("admin")),
			want{outcome: OutcomePass, checked: 1}},
		{"the asked server recorded no user", asked().hop("b", 0, 10, false).hop("a", 2, 8, true, as("admin")),
			want{outcome: OutcomePass, checked: 1}},
		{"only the asked server recorded a user", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"nobody names anybody", asked().hop("b", 0, 10, false).hop("a", 2, 8, true),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the peer could not authenticate the user", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, unauthenticated),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"the first peer could not authenticate the user, and the second took the user for another",
			asked().hop("b", 0, 10, false, as("admin")).hop("c", 1, 4, true, unauthenticated).hop("a", 5, 9, true, as("reader")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took admin for reader", sentence: "c from 20.001s to 20.004s without a user (Authentication failed, attempted: x509)"}},
		{"impersonated, and passed on as the impersonated user", acting(200).hop("b", 0, 10, false, as("joe")).hop("a", 2, 8, true, as("joe")),
			want{outcome: OutcomePass, checked: 1, fact: "of those, of a user whom the sender impersonated: 1"}},
		{"impersonated, and passed on with the impersonation", acting(200).hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("joe")),
			want{outcome: OutcomePass, checked: 1}},
		{"the impersonation is lost on the way", acting(200).hop("b", 0, 10, false, as("joe")).hop("a", 2, 8, true, as("admin"), answering(200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took joe for admin"}},
		{"the peer did not come to the impersonated user", acting(503).hop("b", 0, 10, false, as("joe")).hop("a", 2, 8, true, as("admin"), answering(503)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the impersonation becomes another's", acting(200).hop("b", 0, 10, false, as("joe")).hop("a", 2, 8, true, as("reader"), answering(403)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took joe for reader"}},
		{"nobody was impersonated, and a sender who could is named", tell(name).ask(20, "b", gadgets, 200, by("joe")).hop("b", 0, 10, false, as("joe")).hop("a", 2, 8, true, as("admin"), answering(503)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a took joe for admin"}},
		{"the sender is unknown", tell(name).ask(20, "b", gadgets, 200).hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("reader")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"with the same groups, UID and extra fields", asked().hop("b", 0, 10, false, known("g", "u", "x")).hop("a", 2, 8, true, known("g", "u", "x")),
			want{outcome: OutcomePass, checked: 1}},
		{"with other groups", asked().hop("b", 0, 10, false, known("g", "u", "x")).hop("a", 2, 8, true, known("other", "u", "x")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a saw admin with other groups"}},
		{"with another UID", asked().hop("b", 0, 10, false, known("g", "u", "x")).hop("a", 2, 8, true, known("g", "other", "x")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a saw admin with another UID"}},
		{"with a UID that it does not have", asked().hop("b", 0, 10, false, known("g", "", "x")).hop("a", 2, 8, true, known("g", "u", "x")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "another UID"}},
		{"without its UID, as older versions do", asked().hop("b", 0, 10, false, known("g", "u", "x")).hop("a", 2, 8, true, known("g", "", "x")),
			want{outcome: OutcomePass, checked: 1, fact: "without the user's UID, as versions before v1.33 do: 1"}},
		{"without its extra fields", asked().hop("b", 0, 10, false, known("g", "u", "x")).hop("a", 2, 8, true, known("g", "u", "")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "a saw admin with other extra fields"}},
		{"with extra fields that it does not have", asked().hop("b", 0, 10, false, known("g", "", "")).hop("a", 2, 8, true, known("g", "", "x")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "other extra fields"}},
		{"the asked server recorded only the name, and another asked server recorded all attributes",
			asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, known("other", "u", "x")).ask(30, "c", widgets, 200, by("admin")).hop("c", 0, 10, false, known("g", "u", "x")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "other groups"}},
		{"the asked server recorded only the name, and the peer agrees with one of two other asked servers",
			asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, known("g", "", "x")).ask(30, "c", widgets, 200, by("admin")).hop("c", 0, 10, false, known("g", "u", "x")).
				ask(31, "a", widgets, 200, by("admin")).hop("a", 0, 10, false, known("g", "", "")),
			want{outcome: OutcomePass, checked: 1}},
		{"no asked server recorded more than the name", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, known("g", "u", "x")),
			want{outcome: OutcomePass, checked: 1}},
		{"only another user's attributes are known", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, known("g", "u", "x")).
			ask(30, "c", widgets, 200, by("reader")).hop("c", 0, 10, false, as("reader"), known("other", "", "")),
			want{outcome: OutcomePass, checked: 1}},
		{"nothing was passed on", asked().hop("b", 0, 10, false, as("admin")),
			want{outcome: OutcomeInconclusive, reason: "no operation was handled by a second server"}},
		{"under too little pressure", asked().hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, as("admin")).need(history.Pressure{Skewed: 2}),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 skewed operations"}},
	})
}

func unauthenticated(h *history.Hop) {
	h.Status, h.Unauthenticated = 401, "Authentication failed, attempted: x509"
}

// known is a record with all attributes of a user. The user is admin unless the record names
// another.
func known(groups, uid, extra string) func(*history.Hop) {
	return func(h *history.Hop) {
		if h.User == "" {
			h.User = "admin"
		}
		h.Groups, h.UID, h.Extra = groups, uid, extra
	}
}
