package invariant

import (
	"fmt"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// nopeer adds an answer with profile=nopeer.
func (s *story) nopeer(at float64, server, path string, d history.Document) *story {
	return s.discover(at, server, path, d, verb(history.VerbNoPeer))
}

// openapi adds an OpenAPI description of the group versions of a document.
func (s *story) openapi(at float64, server string, d history.Document, options ...func(*history.Operation)) *story {
	return s.discover(at, server, "/openapi/v3", d, append([]func(*history.Operation){verb(history.VerbOpenAPI)}, options...)...)
}

// legacy adds an answer in an older format.
func (s *story) legacy(at float64, server, path string, d history.Document, options ...func(*history.Operation)) *story {
	return s.discover(at, server, path, d, append([]func(*history.Operation){verb(history.VerbLegacy)}, options...)...)
}

func versionOf(g history.GVR) history.Resource {
	return history.Resource{GVR: history.GVR{Group: g.Group, Version: g.Version}}
}

// lists adds a list, selected by label, of some objects. If objects came before, it is the last
// page of the list.
func (s *story) lists(at float64, server string, items, before int) *story {
	return s.ask(at, server, gadgets, 200, func(o *history.Operation) {
		o.Items, o.Path = items+before, "/apis/apps/v2/gadgets?labelSelector=load"
		if before > 0 {
			o.Items, o.Path = 300, fmt.Sprintf("%s&limit=%d&continue=x", o.Path, before)
		}
	})
}

func media(accept, got string) func(*history.Operation) {
	return func(o *history.Operation) { o.Accept, o.MediaType, o.Body = accept, got, history.BodyList }
}

func status(code int) func(*history.Operation) {
	return func(o *history.Operation) { o.Status = code }
}

// illegibly gives an operation a document that could not be read, so that the history does not hold
// it. message says why.
func illegibly(message string) func(*history.Operation) {
	return func(o *history.Operation) { o.Document, o.Message = "sha256:illegible", message }
}

func more(o *history.Operation) { o.More = true }

func at(path string) func(*history.Operation) { return func(o *history.Operation) { o.Path = path } }

func TestNoPeerIsLocal(t *testing.T) {
	const name = "NoPeerIsLocal"
	ownOfB := doc("own-of-b", line(widgets))
	checkStories(t, name, []storyCase{
		{"each its own", tell(name).nopeer(20, "a", "/apis", mergedDoc).nopeer(20, "b", "/apis", ownOfB).nopeer(20, "a", "/api", coreDoc),
			want{outcome: OutcomePass, checked: 3}},
		{"its peers' resources too", tell(name).nopeer(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lists what the server does not serve itself", sentence: "lists apps/v2/gadgets"}},
		{"less than its own", tell(name).nopeer(20, "a", "/apis", ownOfB),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lacks what the server serves itself"}},
		{"of the core group too", tell(name).nopeer(20, "b", "/api", coreDoc),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/api lists what the server does not serve itself"}},
		{"the merged view is not its business", tell(name).discover(20, "b", "/apis", ownOfB),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"the core group is unknown", blank(name).start("a", 0, mergedDoc).start("b", 0, mergedDoc).start("c", 0, mergedDoc).nopeer(20, "b", "/api", coreDoc),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"while it changes", tell(name).changed("b", 19, 21, newDoc).nopeer(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"of a server that is paused", tell(name).pause("b", 19, 21).nopeer(20, "b", "/apis", mergedDoc), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"an error lists nothing", tell(name).discover(20, "b", "/apis", mergedDoc, verb(history.VerbNoPeer), status(503)),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"two minor versions that say the same", tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").served("b", 2, newDoc).nopeer(20, "b", "/apis", mergedDoc),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "a (v1.37.1) and b (v1.36.3) say that they serve exactly the same"}},
		{"two minor versions that differ", tell(name).runs("a", "v1.37.1").runs("b", "v1.36.3").runs("c", "v1.36.3").nopeer(20, "b", "/apis", ownOfB),
			want{outcome: OutcomePass, checked: 1}},
		{"at once after it changed", tell(name).served("b", 19, newDoc).nopeer(20, "b", "/apis", ownOfB),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "lacks"}},
	})
}

func TestOpenAPIDescribes(t *testing.T) {
	const name = "OpenAPIDescribes"
	all := doc("described", versionOf(pods), versionOf(widgets), versionOf(gadgets))
	// a serves a resource of example.com/v1 that a step has defined, in the given version.
	extended := func(aggregated bool, version string) *story {
		s := tell(name).define(30, "example.com", "gizmos", version)
		s.h.Steps[0].Defined.Aggregated = aggregated
		return s.served("a", 31, doc("extended", line(pods), line(widgets), line(gadgets), line(history.GVR{Group: "example.com", Version: "v1", Resource: "gizmos"})))
	}
	checkStories(t, name, []storyCase{
		{"all, and what peers serve too", tell(name).openapi(20, "a", all).openapi(20, "b", all), want{outcome: OutcomePass, checked: 2}},
		{"its own only", tell(name).openapi(20, "b", doc("old-described", versionOf(pods), versionOf(widgets))), want{outcome: OutcomePass, checked: 1}},
		{"a version left out", tell(name).openapi(20, "a", doc("old-described", versionOf(pods), versionOf(widgets))),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "lacks", sentence: "nothing of apps/v2"}},
		{"the core group left out", tell(name).openapi(20, "b", doc("coreless", versionOf(widgets))),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "nothing of v1,"}},
		{"an error", tell(name).openapi(20, "b", all, status(500)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "is answered 500"}},
		{"refused before it is routed", tell(name).openapi(20, "a", all, status(401)).openapi(20, "b", all, status(403)).openapi(20, "c", all, status(429)),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"no such thing", tell(name).openapi(20, "b", all, status(404)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "is answered 404"}},
		{"not a description", tell(name).openapi(20, "b", all, illegibly("parse OpenAPI: unexpected end of JSON input")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/openapi/v3 is answered 200 without a description"}},
		{"a description that the history does not hold", tell(name).openapi(20, "b", all, illegibly("")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"not modified", tell(name).openapi(20, "b", all, status(304)), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"while it changes", tell(name).served("a", 20.005, oldDoc).openapi(20, "a", doc("old-described", versionOf(pods), versionOf(widgets))),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"too soon after a change", tell(name).served("b", 15, newDoc).openapi(20, "b", doc("old-described", versionOf(pods), versionOf(widgets))),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"one version", tell(name).openapi(20, "a", doc("one", versionOf(gadgets)), at("/openapi/v3/apis/apps/v2?hash=x")), want{outcome: OutcomePass, checked: 1}},
		{"one version, and it is not in it", tell(name).openapi(20, "a", doc("another", versionOf(widgets)), at("/openapi/v3/apis/apps/v2")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "lacks", sentence: "nothing of apps/v2"}},
		{"one version that it serves is not there", tell(name).openapi(20, "a", doc("one", versionOf(gadgets)), at("/openapi/v3/apis/apps/v2"), status(404)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "is answered 404"}},
		{"one version that a peer serves is not there", tell(name).openapi(20, "b", doc("one", versionOf(gadgets)), at("/openapi/v3/apis/apps/v2"), status(404)),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"one version of a custom resource is not there", tell(name).openapi(20, "b", doc("one", versionOf(gadgets)), at("/openapi/v3/apis/example.com/v1"), status(404)),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"one version of an aggregated API is not there, in a built-in group",
			aggregated(tell(name).define(5, "apps", "gadgets", "v2")).openapi(20, "a", doc("one", versionOf(gadgets)), at("/openapi/v3/apis/apps/v2"), status(404)),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"one version beside an aggregated API is not there",
			aggregated(tell(name).define(5, "apps", "gauges", "v9")).openapi(20, "a", doc("one", versionOf(gadgets)), at("/openapi/v3/apis/apps/v2"), status(404)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "is answered 404"}},
		{"a version of an aggregated API left out", extended(true, "v1").openapi(60, "a", all), want{outcome: OutcomePass, checked: 1}},
		{"a version of a custom resource left out", extended(false, "v1").openapi(60, "a", all),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "nothing of example.com/v1"}},
		{"another version than that of the aggregated API left out", extended(true, "v2").openapi(60, "a", all),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "nothing of example.com/v1"}},
		{"too soon after a start", tell(name).openapi(5, "b", doc("nothing"), status(503)), want{outcome: OutcomeInconclusive, reason: notExercised}},
	})
}

func TestLegacyListsOwn(t *testing.T) {
	const name = "LegacyListsOwn"
	all, own := doc("legacy-of-all", versionOf(widgets), versionOf(gadgets)), doc("legacy-of-b", versionOf(widgets))
	core := doc("legacy-core", versionOf(pods))
	checkStories(t, name, []storyCase{
		{"its own only", tell(name).legacy(20, "b", "/apis", own).legacy(20, "b", "/api", core), want{outcome: OutcomePass, checked: 2}},
		{"what peers serve too", tell(name).legacy(20, "b", "/apis", all), want{outcome: OutcomePass, checked: 1}},
		{"a version left out", tell(name).legacy(20, "a", "/apis", own),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis lacks", sentence: "nothing of apps/v2"}},
		{"the core group left out", tell(name).legacy(20, "b", "/api", doc("empty")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/api lacks", sentence: "nothing of v1,"}},
		{"an error", tell(name).legacy(20, "b", "/apis", all, status(503)), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "is answered 503"}},
		{"not a list", tell(name).legacy(20, "b", "/apis", all, illegibly(`parse legacy discovery: got kind "Status"`)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "/apis is answered 200 without a list"}},
		{"a list that the history does not hold", tell(name).legacy(20, "b", "/apis", all, illegibly("")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"refused before it is routed", tell(name).legacy(20, "a", "/apis", all, status(401)).legacy(20, "b", "/apis", all, status(403)).legacy(20, "c", "/apis", all, status(429)),
			want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"a custom resource left out", blank(name).start("b", 0, doc("custom", line(pods), line(history.GVR{Group: "example.com", Version: "v1", Resource: "widgets"}))).
			legacy(20, "b", "/apis", doc("empty")), want{outcome: OutcomePass, checked: 1}},
		{"too soon after a start", tell(name).legacy(5, "b", "/apis", doc("empty"), status(503)), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"while it changes", tell(name).served("a", 20.005, oldDoc).legacy(20, "a", "/apis", own),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"too soon after a change", tell(name).served("b", 15, newDoc).legacy(20, "b", "/apis", own),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
	})
}

func TestListsAgree(t *testing.T) {
	const name = "ListsAgree"
	created := func(s *story, at float64, options ...func(*history.Operation)) *story {
		return s.ask(at, "a", gadgets, 201, append([]func(*history.Operation){verb("create")}, options...)...)
	}
	checkStories(t, name, []storyCase{
		{"whole and in pages", tell(name).lists(20, "a", 300, 0).lists(21, "b", 300, 0).lists(22, "c", 100, 50),
			want{outcome: OutcomePass, checked: 3, fact: "objects in the longest list: 300"}},
		{"one is short", tell(name).lists(20, "a", 300, 0).lists(21, "b", 250, 0).lists(22, "c", 300, 0),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "another length", sentence: "listed 250 objects, when most lists had 300"}},
		{"a page that is not the last", tell(name).lists(20, "a", 300, 0).ask(21, "b", gadgets, 200, at("/x?labelSelector=load"), more),
			want{outcome: OutcomePass, checked: 1}},
		{"lists of something else", tell(name).lists(20, "a", 300, 0).ask(21, "a", widgets, 200, at("/x?labelSelector=load")),
			want{outcome: OutcomePass, checked: 2}},
		{"not by label", tell(name).ask(20, "a", gadgets, 200).ask(21, "b", gadgets, 200), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"one was created in between", created(tell(name).lists(20, "a", 300, 0), 30).lists(50, "b", 301, 0), want{outcome: OutcomePass, checked: 2}},
		{"the one that was created is not seen by all", created(tell(name), 30).lists(50, "b", 301, 0).lists(51, "c", 300, 0).lists(52, "a", 301, 0),
			want{outcome: OutcomeFail, checked: 3, violations: 1, sentence: "listed 300 objects, when most lists had 301"}},
		{"a dry run creates nothing", created(tell(name).lists(20, "a", 300, 0), 30, at("/x?dryRun=All")).lists(50, "b", 301, 0),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"what is refused creates nothing", created(tell(name).lists(20, "a", 300, 0), 30, status(403)).lists(50, "b", 301, 0),
			want{outcome: OutcomeFail, checked: 2, violations: 1}},
		{"one was deleted in between", tell(name).lists(20, "a", 300, 0).ask(30, "a", gadgets, 200, verb("delete")).lists(50, "b", 299, 0), want{outcome: OutcomePass, checked: 2}},
		{"all were deleted in between", tell(name).lists(20, "a", 300, 0).ask(30, "a", gadgets, 200, verb("deletecollection")).lists(50, "b", 0, 0), want{outcome: OutcomePass, checked: 2}},
		{"one was applied in between", tell(name).lists(20, "a", 300, 0).ask(30, "a", gadgets, 201, verb("patch")).lists(50, "b", 301, 0), want{outcome: OutcomePass, checked: 2}},
		{"a server that is paused", tell(name).lists(20, "a", 300, 0).pause("b", 25, 60).lists(50, "b", 250, 0), want{outcome: OutcomePass, checked: 1}},
		{"one created a moment before", created(tell(name), 30).lists(31, "b", 301, 0),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"a creation without an answer, which may still be carried out", created(tell(name), 30, status(504)).lists(55, "b", 301, 0),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"a creation without any answer", created(tell(name), 30, status(0), failed(history.FailureTimeout)).lists(55, "b", 301, 0),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
	})
}

func TestAnsweredInKind(t *testing.T) {
	const name, yaml = "AnsweredInKind", "application/yaml"
	fails := func(cause string) want { return want{outcome: OutcomeFail, checked: 1, violations: 1, cause: cause} }
	body := func(b history.Body) func(*history.Operation) { return func(o *history.Operation) { o.Body = b } }
	checkStories(t, name, []storyCase{
		{"as asked", tell(name).ask(20, "b", gadgets, 200, media(yaml, yaml)).ask(21, "b", gadgets, 200, media("application/json;as=Table;v=v1,"+yaml, "")),
			want{outcome: OutcomePass, checked: 2, fact: "responses to requests that had to be passed on: 2"}},
		{"anything will do", tell(name).ask(20, "b", gadgets, 200, media("*/*", yaml)).ask(21, "b", gadgets, 200, media("application/*", yaml)),
			want{outcome: OutcomePass, checked: 2}},
		{"another type", tell(name).ask(20, "b", gadgets, 200, media(yaml, "")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "application/json for application/yaml", sentence: "in application/json, to a client that accepts"}},
		{"a sequence", tell(name).ask(20, "b", gadgets, 200, media("application/cbor", "application/cbor-seq")), want{outcome: OutcomePass, checked: 1}},
		{"errors come as they may", tell(name).ask(20, "b", gadgets, 503, media(yaml, "text/plain")), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"an empty response without a type", tell(name).ask(20, "b", gadgets, 200, media(yaml, ""), sub("connect"), body(history.BodyNone)), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"no body where a list was asked for", tell(name).ask(20, "b", gadgets, 204), fails("no body for list")},
		{"an object for a list", tell(name).ask(20, "b", gadgets, 200, body(history.BodyObject)), fails("a body of the kind object for list")},
		{"a list for a table", tell(name).ask(20, "b", gadgets, 200, verb(history.VerbTable), body(history.BodyList)), fails("a body of the kind list for table")},
		{"a Status for a creation", tell(name).ask(20, "b", gadgets, 201, verb("create"), body(history.BodyStatus)), fails("a body of the kind status for create")},
		{"a list for a watch", tell(name).ask(20, "b", gadgets, 200, verb("watch"), body(history.BodyList)), fails("a body of the kind list for watch")},
		{"a Status for a deletion", tell(name).ask(20, "b", gadgets, 200, verb("delete"), body(history.BodyStatus)), want{outcome: OutcomeInconclusive, reason: notExercised}},
		{"nothing was asked for", tell(name).ask(20, "b", gadgets, 200), want{outcome: OutcomeInconclusive, reason: notExercised}},
	})
}

// "Not modified" counts like the document that the client has. A 304 for an old document is the
// same as an answer with the old document.
func TestNotModifiedCountsAsTheDocument(t *testing.T) {
	const name = "DiscoveryDeterministic"
	poor := doc("poor", line(widgets))
	again := tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", mergedDoc).discover(22, "c", "/apis", mergedDoc, status(304))
	want{outcome: OutcomePass, checked: 3}.check(t, verdictOf(t, again.h, name))
	stale := tell(name).discover(20, "a", "/apis", mergedDoc).discover(21, "b", "/apis", mergedDoc).discover(22, "c", "/apis", poor, status(304))
	want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "other resources"}.check(t, verdictOf(t, stale.h, name))
	want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "lacks what is served"}.check(t, verdictOf(t, stale.h, "DiscoveryComplete"))
}

// The form of an answer must have been asked for: the list names its type, or a wildcard covers it.
// A type that only begins or ends like a listed one is another type.
func TestWhichMediaTypesWereAskedFor(t *testing.T) {
	for _, c := range []struct {
		accept, got string // "" got: JSON
		want        ruling
	}{
		{"", "text/html", rulingNone},
		{"application/json", "", rulingRight}, {"application/json", "application/json", rulingRight},
		{"application/json", "application/yaml", rulingWrong}, {"application/yaml", "", rulingWrong},
		{"application/yaml, application/json", "", rulingRight}, {"application/yaml,application/cbor", "", rulingWrong},
		{"Application/JSON ; q=0.9", "", rulingRight}, {"application/json;as=Table;v=v1", "", rulingRight},
		{"*/*", "text/html", rulingRight}, {"application/yaml,*/*;q=0.1", "text/html", rulingRight}, {"*", "text/html", rulingWrong},
		{"application/*", "", rulingRight}, {"text/*", "", rulingWrong}, {"text/*", "text/html", rulingRight},
		{"app/*", "", rulingWrong}, {"application", "", rulingWrong}, {"application/", "", rulingWrong}, {"application/js", "", rulingWrong},
		{"application/json", "application/jsonp", rulingWrong}, {"application/json", "application/js", rulingWrong},
		{"application/cbor", "application/cbor-seq", rulingRight}, {"application/cbor-seq", "application/cbor", rulingWrong},
		{"application/cbor", "application/cbor-seq2", rulingWrong},
	} {
		op := &history.Operation{Sent: &history.Sent{}, Received: &history.Received{Status: 200}}
		media(c.accept, c.got)(op)
		if got := ruleInKind(op); got != c.want {
			t.Errorf("asked for %q, got %q: %v, want %v", c.accept, c.got, got, c.want)
		}
	}
	nothing := &history.Operation{Sent: &history.Sent{Accept: "text/html"}, Received: &history.Received{Status: 200}}
	if got := ruleInKind(nothing); got != rulingNone {
		t.Errorf("no body: %v, want %v", got, rulingNone)
	}
}
