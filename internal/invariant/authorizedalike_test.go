package invariant

import (
	"fmt"
	"slices"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// forbidden is a refusal in the authorizer's words. It must be applied after by.
func forbidden(o *history.Operation) {
	o.Reason, o.Message = "Forbidden", fmt.Sprintf("gadgets is forbidden: User %q cannot %s resource \"gadgets\" in API group \"apps\" at the cluster scope", o.User, o.Verb)
}

// denied is a refusal in the words of an admission plugin.
func denied(o *history.Operation) {
	o.Reason, o.Message = "Forbidden", `gadgets "x" is forbidden: exceeded quota`
}

func in(namespace string) func(*history.Operation) {
	return func(o *history.Operation) { o.Namespace = namespace }
}

func TestAuthorizedAlike(t *testing.T) {
	const name = "AuthorizedAlike"
	reader, writing := by("reader"), verb("create")
	refused := func() *story {
		return tell(name).ask(15, "a", widgets, 200).ask(30, "a", gadgets, 403, reader, writing, forbidden).ask(30, "b", gadgets, 403, reader, writing, forbidden)
	}
	checkStories(t, name, []storyCase{
		{"refused everywhere", refused(), want{outcome: OutcomePass, checked: 2, fact: "kinds of requests that users were refused: 1"}},
		{"another user may", refused().ask(31, "b", gadgets, 201, by("admin"), writing), want{outcome: OutcomePass, checked: 3}},
		{"the user may do something else", refused().ask(31, "b", gadgets, 200, reader), want{outcome: OutcomePass, checked: 3}},
		{"the user may do it to something else", refused().ask(31, "b", widgets, 201, reader, writing), want{outcome: OutcomePass, checked: 3}},
		{"the user may do it to a part of it", refused().ask(31, "b", gadgets, 201, reader, writing, sub("status")), want{outcome: OutcomePass, checked: 3}},
		{"the user may do it in another namespace", refused().ask(31, "b", gadgets, 201, reader, writing, in("own")), want{outcome: OutcomePass, checked: 3}},
		{"one server allows it", refused().ask(31, "c", gadgets, 201, reader, writing),
			want{outcome: OutcomeFail, checked: 3, violations: 2, cause: "reader was refused what c allowed",
				sentence: "while c answered 201 to the same user for such a request at 31s"}},
		{"the same server allows it after passing it on", refused().ask(31, "b", gadgets, 409, reader, writing),
			want{outcome: OutcomeFail, checked: 3, violations: 2, cause: "reader was refused what b allowed"}},
		{"a node is refused what another server allows", tell(name).ask(15, "a", widgets, 200).
			ask(30, "b", gadgets, 403, by("system:node:n1"), forbidden).ask(31, "c", gadgets, 200, by("system:node:n1")),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "system:node:n1 was refused what c allowed"}},
		{"a node is refused what nobody serves any more", tell(name).ask(15, "a", widgets, 200).ask(20, "c", gadgets, 200, by("system:node:n1")).
			stop("a", 30).stop("c", 30).ask(50, "b", gadgets, 403, by("system:node:n1"), forbidden),
			want{outcome: OutcomePass, checked: -1, fact: "kinds of requests that users were refused: 1"}},
		{"only the object is missing", refused().ask(31, "b", gadgets, 404, reader, writing, missingObject),
			want{outcome: OutcomeFail, checked: 3, violations: 2}},
		{"a table is a list", tell(name).ask(15, "a", widgets, 200).ask(30, "a", gadgets, 403, reader, forbidden).
			ask(31, "b", gadgets, 200, reader, verb(history.VerbTable)), want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"the resource is missing", refused().ask(31, "b", gadgets, 404, reader, writing), want{outcome: OutcomePass, checked: 2}},
		{"no peer can be reached", refused().ask(31, "b", gadgets, 503, reader, writing), want{outcome: OutcomePass, checked: 2}},
		{"an admission plugin refuses", refused().ask(31, "b", gadgets, 403, by("admin"), writing, denied).ask(32, "b", gadgets, 201, by("admin"), writing),
			want{outcome: OutcomePass, checked: 3}},
		{"rights have not spread", tell(name).ask(14, "a", widgets, 200).ask(15, "c", gadgets, 403, reader, forbidden).
			ask(30, "b", gadgets, 200, reader).ask(31, "b", gadgets, 403, reader, writing, forbidden),
			want{outcome: OutcomePass, checked: 2, fact: "not counted while rights spread: 1"}},
		{"a server has just been started", refused().stop("c", 40).start("c", 50, oldDoc).ask(52, "c", gadgets, 201, reader, writing),
			want{outcome: OutcomePass, checked: 2}},
		{"a server is paused", refused().pause("c", 40, 60).ask(55, "c", gadgets, 201, reader, writing), want{outcome: OutcomePass, checked: 2}},
		{"no user is refused anything", tell(name).ask(15, "a", widgets, 200).ask(30, "b", gadgets, 200, reader),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "no user was refused anything"}},
		{"the user is unknown", tell(name).ask(30, "b", gadgets, 403, writing, forbidden), want{outcome: OutcomeInconclusive, reason: "not exercised"}},
	})
}

// Rules for nodes explain a refusal only if, by the recordings, the version that decided does not
// permit the request and another one does. Every other refusal may have another cause, such as a
// group that was lost on the way to a peer.
func TestRulesForNodesExplainOnlyWhatTheyRefuse(t *testing.T) {
	const general, rules = "refused what another server allowed", "a node was refused by the rules of its server's version"
	bundles := history.GVR{Group: "certificates.k8s.io", Version: "v1", Resource: "clustertrustbundles"}
	drivers := history.GVR{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}
	node, reader := by("system:node:n1"), by("system:serviceaccount:default:reader")
	newest := doc("newest", line(pods), line(widgets), line(bundles), line(drivers))
	for _, c := range []struct {
		name  string
		of    history.GVR
		as    func(*history.Operation)
		older string
		want  string
		hop   bool // b passed the refused request on to a
	}{
		{"the older version has no such rule", bundles, node, "v1.36.3", rules, false},
		{"both versions have the rule", drivers, node, "v1.36.3", general, false},
		{"the peer has the rule, and refuses", bundles, node, "v1.36.3", general, true},
		{"the asked server has the rule", bundles, node, "v1.37.1", general, false},
		{"its rules are not recorded", bundles, node, "v1.20.0", general, false},
		{"the user is no node", bundles, reader, "v1.36.3", general, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := blank("AuthorizedAlike").document(newest).start("a", 0, newest).start("b", 0, oldDoc).start("c", 0, oldDoc).
				runs("a", "v1.37.1").runs("b", c.older).runs("c", c.older).ask(15, "a", widgets, 200)
			s.ask(30, "a", c.of, 200, c.as).ask(31, "b", c.of, 403, c.as, forbidden)
			if c.hop {
				s.hop("b", 0, 9, false).hop("a", 1, 8, true)
			}
			var got []string
			for _, signature := range signaturesOf(s.h) {
				if signature.Invariant == "AuthorizedAlike" {
					got = append(got, signature.Wrong)
				}
			}
			if !slices.Equal(got, []string{c.want}) {
				t.Errorf("violated by %q, want %q", got, c.want)
			}
		})
	}
}
