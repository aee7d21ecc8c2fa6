package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

var (
	reorderedDoc = doc("reordered", line(gadgets), line(widgets))
	otherKindDoc = doc("other-kind", func() history.Resource { r := line(widgets); r.Kind = "Other"; return r }(), line(gadgets))
)

func TestDiscoveryDeterministic(t *testing.T) {
	const name = "DiscoveryDeterministic"
	checkStories(t, name, []storyCase{
		{"all answer the same", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", mergedDoc).discover(22, "a", "/api", coreDoc).discover(23, "b", "/api", coreDoc),
			want{outcome: OutcomePass, checked: 4}},
		{"another order", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", reorderedDoc).discover(22, "c", "/apis", mergedDoc),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "same resources in another order at the same time", sentence: "b answered /apis at 21s differently from a at 20s"}},
		{"other resources", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", doc("poor", line(widgets))).discover(22, "c", "/apis", mergedDoc),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "/apis: other resources", sentence: "only a at 20s lists apps/v2/gadgets"}},
		{"another kind", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", otherKindDoc),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "same resources, other bytes"}},
		{"another ETag of the same bytes", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", mergedDoc, etag("x")),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "same bytes, other ETag"}},
		{"the same ETag of other bytes", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", reorderedDoc, etag("etag-merged")),
			want{outcome: OutcomeFail, checked: 2, violations: 1, cause: "same ETag, other bytes"}},
		{"only subresources of the core group differ", tell(name).discover(20, "a", "/api", coreDoc).discover(21, "b", "/api", doc("core-old", line(pods, "status"))).discover(22, "c", "/api", doc("core-old", line(pods, "status"))),
			want{outcome: OutcomePass, checked: 3}},
		{"one of them is not a document", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", mergedDoc, illegibly("unexpected end of JSON input"), etag("x")).discover(22, "c", "/apis", mergedDoc),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "/apis: other bytes, which could not be parsed at the same time"}},
		{"paths are not mixed up", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/api", coreDoc),
			want{outcome: OutcomeInconclusive, checked: 2, reason: "in no steady window did two apiservers"}},
		{"only one server was asked", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "a", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, checked: 2, reason: "in no steady window did two apiservers"}},
		{"one server answers in two ways", tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "a", "/apis", reorderedDoc),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"differences outside steady state", tell(name).discover(5, "a", "/apis", mergedDoc).discover(6, "b", "/apis", reorderedDoc).
			discover(20, "a", "/apis", mergedDoc).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 2}},
		{"a fault is no steady state", tell(name).cut("b", "c", 10, 100).discover(50, "a", "/apis", mergedDoc).discover(50, "b", "/apis", reorderedDoc),
			want{outcome: OutcomeInconclusive, reason: "in no steady window"}},
		{"restarted in another order, the order differs", tell(name).discover(20, "a", "/apis", mergedDoc).discover(20, "b", "/apis", mergedDoc).
			stop("a", 30).start("a", 33, newDoc).discover(50, "a", "/apis", reorderedDoc).discover(50, "b", "/apis", reorderedDoc),
			want{outcome: OutcomeFail, checked: 4, violations: 2, cause: "in another steady window"}},
		{"the same versions on other servers", tell(name).discover(20, "a", "/apis", mergedDoc).discover(20, "b", "/apis", mergedDoc).
			stop("a", 30).start("a", 33, oldDoc).stop("b", 35).start("b", 37, newDoc).discover(60, "a", "/apis", reorderedDoc).discover(60, "b", "/apis", reorderedDoc),
			want{outcome: OutcomeFail, checked: 4, violations: 2, cause: "in another steady window"}},
		{"after an upgrade it may differ", tell(name).discover(20, "a", "/apis", mergedDoc).discover(20, "b", "/apis", mergedDoc).
			stop("b", 30).start("b", 33, newDoc).discover(50, "a", "/apis", reorderedDoc).discover(50, "b", "/apis", reorderedDoc),
			want{outcome: OutcomePass, checked: 4}},
		{"without ground truth windows stand alone", blank(name).startUnknown("a", 0).startUnknown("b", 0).startUnknown("c", 0).
			discover(20, "a", "/apis", mergedDoc).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 2}},
		{"a killed server may come back", tell(name).kill("c", 10).discover(50, "a", "/apis", mergedDoc).discover(50, "b", "/apis", reorderedDoc),
			want{outcome: OutcomeInconclusive, reason: "in no steady window"}},
		{"a server that stopped gracefully need not come back", tell(name).stop("c", 10).discover(50, "a", "/apis", mergedDoc).discover(50, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 2}},
	})
}

func TestDiscoveryComplete(t *testing.T) {
	const name = "DiscoveryComplete"
	checkStories(t, name, []storyCase{
		{"the union", tell(name).discover(20, "b", "/apis", mergedDoc).discover(20, "b", "/api", coreDoc),
			want{outcome: OutcomePass, checked: 2}},
		{"order does not matter here", tell(name).discover(20, "b", "/apis", reorderedDoc),
			want{outcome: OutcomePass, checked: 1}},
		{"a resource is missing", tell(name).discover(20, "b", "/apis", doc("poor", line(widgets))),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lacks what is served", sentence: "only the union of what all serve lists apps/v2/gadgets"}},
		{"a resource is made up", tell(name).discover(20, "b", "/apis", doc("rich", line(widgets), line(gadgets), line(ghosts))),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lists what no server serves", sentence: "lists none/v1/ghosts"}},
		{"a peer's subresource is missing in the core group", tell(name).discover(20, "b", "/api", doc("core-old", line(pods, "status"))),
			want{outcome: OutcomePass, checked: 1}},
		{"a verb is missing", tell(name).discover(20, "b", "/apis", doc("verbless", history.Resource{GVR: widgets, Verbs: []string{"get"}}, line(gadgets))),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "apps/v1/widgets list"}},
		{"a resource of a stopped server is still listed", tell(name).stop("a", 20).discover(50, "b", "/apis", mergedDoc),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "lists what no server serves"}},
		{"too soon after the server stopped", tell(name).stop("a", 20).discover(25, "b", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document was fetched in steady state"}},
		{"a server's document is not known", blank(name).startUnknown("a", 0).start("b", 0, oldDoc).start("c", 0, oldDoc).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the core group is unknown", blank(name).start("a", 0, mergedDoc).start("b", 0, mergedDoc).start("c", 0, mergedDoc).discover(20, "b", "/api", coreDoc),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"a document that the history does not hold", tell(name).discover(20, "b", "/apis", mergedDoc, func(o *history.Operation) { o.Document = "lost" }),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"not a document", tell(name).discover(20, "b", "/apis", mergedDoc, illegibly("got kind APIGroupList")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis is answered 200 without a discovery document", sentence: "b"}},
		{"406 to a client that accepts what servers write", tell(name).discover(20, "b", "/api", coreDoc, status(406), illegibly("only the following media types are accepted")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/api is answered 406 without a discovery document"}},
		{"304 without a condition in the request", tell(name).discover(20, "b", "/apis", mergedDoc, status(304), func(o *history.Operation) { o.Document, o.Message = "", "the client has not said what it has" }),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis is answered 304"}},
		{"304, and the client's document is unknown", tell(name).discover(20, "b", "/apis", mergedDoc, status(304), func(o *history.Operation) { o.Document = "" }),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document"}},
		{"406 of servers whose resources are unknown", blank(name).startUnknown("a", 0).startUnknown("b", 0).startUnknown("c", 0).discover(20, "b", "/apis", mergedDoc, status(406)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"406 of a server that is not ready", tell(name).stop("b", 20).state("b", 30, history.StateStarting).discover(31, "b", "/apis", mergedDoc, status(406)),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document"}},
		{"refused before it is routed", tell(name).discover(20, "a", "/apis", mergedDoc, status(401)).discover(20, "b", "/apis", mergedDoc, status(403)).discover(20, "c", "/apis", mergedDoc, status(429)),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document"}},
		{"a failed fetch", tell(name).discover(20, "b", "/apis", mergedDoc, func(o *history.Operation) { o.Status = 503 }),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document"}},
		{"two minor versions that say the same", tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").served("b", 2, newDoc).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "a (v1.37.1) and b (v1.36.3) say that they serve exactly the same: their nopeer documents may be merged ones"}},
		{"two minor versions that say the same in another order", tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").
			served("b", 2, doc("shuffled", line(gadgets), line(pods, "status"), line(widgets))).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "a (v1.37.1) and b (v1.36.3) say"}},
		{"two minor versions that differ", tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 1}},
		{"two patches of a minor version may serve the same", tell(name).runs("a", "v1.37.1").runs("b", "v1.37.0").runs("c", "v1.36.3").served("b", 2, newDoc).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 1}},
		{"invalid versions cannot be compared", tell(name).runs("a", "new").runs("b", "old").served("b", 2, newDoc).discover(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 1}},
		{"two minor versions that said the same when nothing was judged", tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").served("b", 2, newDoc).
			served("b", 50, oldDoc).discover(70, "b", "/apis", mergedDoc),
			want{outcome: OutcomePass, checked: 1}},
		{"the unmerged view does not count", tell(name).discover(20, "b", "/apis?profile=nopeer", doc("poor", line(widgets))),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document"}},
	})
}

func TestDiscoveryAccessible(t *testing.T) {
	const name = "DiscoveryAccessible"
	listed := func() *story {
		return tell(name).discover(20, "b", "/apis", mergedDoc).discover(20, "b", "/api", coreDoc)
	}
	checkStories(t, name, []storyCase{
		{"all that is listed answers", listed().ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 503, sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomePass, checked: 3, fact: "visited, over all swept servers: 3 of 3"}},
		{"listed, but 404", listed().ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 404, sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "listed, but 404, though a could be reached"}},
		{"the load finds it", listed().ask(30, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a listed subresource", listed().ask(30, "b", pods, 404, sub("resize"), sweep),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "v1/pods/resize"}},
		{"listed, and no server serves it", tell(name).discover(20, "b", "/apis", doc("rich", line(ghosts))).ask(30, "b", ghosts, 404, sweep),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "no server serves it"}},
		{"two minor versions that say the same", listed().runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").served("b", 2, newDoc).
			ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 200, sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomeInconclusive, checked: 3, reason: "a (v1.37.1) and b (v1.36.3) say that they serve exactly the same"}},
		{"two minor versions that differ", listed().runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").
			ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 200, sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomePass, checked: 3}},
		{"an object is missing", listed().ask(30, "b", widgets, 404, missingObject, sweep).ask(30, "b", gadgets, 200, sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomePass, checked: 3}},
		{"404 that broke off before it named its subject",
			listed().ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 404, failed(history.FailureReset), unsaid, sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomeInconclusive, checked: 2, unjudgeable: 1, reason: "only 2 of 3 listed resources"}},
		{"refused before it was routed, or not answered", listed().ask(30, "b", widgets, 403, sweep).ask(30, "b", gadgets, 0, failed(history.FailureTimeout), sweep).ask(30, "b", pods, 200, sweep),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "only 1 of 3 listed resources"}},
		{"a small part was visited", listed().ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 200, sweep),
			want{outcome: OutcomeInconclusive, checked: 2, reason: "only 2 of 3 listed resources"}},
		{"visited on one of two swept servers", listed().ask(30, "b", widgets, 200, sweep).ask(30, "b", gadgets, 200, sweep).ask(30, "b", pods, 200, sweep).ask(30, "c", pods, 200, sweep),
			want{outcome: OutcomeInconclusive, checked: 4, reason: "only 4 of 6 listed resources were visited (on each of 2 swept servers)"}},
		{"what can only be created need not be visited", tell(name).discover(20, "b", "/apis", doc("reviews", line(widgets), history.Resource{GVR: ghosts, Verbs: []string{"create"}})).ask(30, "b", widgets, 200, sweep),
			want{outcome: OutcomePass, checked: 1}},
		{"no sweep", listed().ask(30, "b", widgets, 200),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "no sweep visited what discovery lists"}},
		{"what is not listed may be 404", listed().ask(30, "b", ghosts, 404, sweep),
			want{outcome: OutcomeInconclusive, reason: "no sweep visited what discovery lists"}},
		{"no discovery", tell(name).ask(30, "b", widgets, 200, sweep),
			want{outcome: OutcomeInconclusive, reason: "no merged discovery document"}},
		{"not in steady state", listed().step("harm", 40, 60).ask(50, "b", gadgets, 404, sweep),
			want{outcome: OutcomeInconclusive, reason: "no sweep visited what discovery lists"}},
	})
}
