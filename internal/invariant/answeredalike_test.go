package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// sending makes a request have a body of a media type.
func sending(mediaType string) func(*history.Operation) {
	return func(o *history.Operation) { o.ContentType = mediaType }
}

func accepting(mediaType string) func(*history.Operation) {
	return func(o *history.Operation) { o.Accept = mediaType }
}

// named makes a request one about a single object.
func named(o *history.Operation) { o.Verb, o.Name = "get", "x" }

func socket(o *history.Operation) { o.Client = history.ClientSocket }

func TestAnsweredAlike(t *testing.T) {
	const name = "AnsweredAlike"
	const json, cbor = "application/json", "application/cbor"
	const otherwise = "where servers give this user other answers at that time"
	admin, creating := by("admin"), verb("create")
	direct := func(status int, options ...func(*history.Operation)) *story {
		return tell(name).ask(20, "a", gadgets, status, append([]func(*history.Operation){admin}, options...)...)
	}
	across := func(s *story, status int, options ...func(*history.Operation)) *story {
		return s.ask(40, "b", gadgets, status, append([]func(*history.Operation){admin}, options...)...)
	}
	// known is a story in which these servers answer the user's requests at that time.
	known := func(servers ...string) *story {
		s := direct(200)
		for _, server := range servers {
			s.ask(38, server, widgets, 200, admin)
		}
		return s
	}
	right := want{outcome: OutcomePass, checked: 1}
	wrong := func(cause string) want {
		return want{outcome: OutcomeFail, checked: 1, violations: 1, cause: cause}
	}
	unknown := want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}
	none := want{outcome: OutcomeInconclusive, reason: notExercised}
	carried := "where servers that serve it carry it out"

	extension := func(s *story, aggregated bool) *story { // in the group version of gadgets, long before
		s.define(1, gadgets.Group, "gauges", gadgets.Version)
		s.h.Steps[len(s.h.Steps)-1].Defined.Aggregated = aggregated
		return s
	}
	// a has gizmos built in. b serves gizmos itself from 51 on, after a definition, and then answers
	// what it passed on before.
	gizmos := history.GVR{Group: "flows", Version: "v9", Resource: "gizmos"}
	itself := func(s *story, defined string) *story {
		with := doc("with gizmos", line(pods, "status"), line(widgets), line(gizmos))
		return s.changed("a", 1, 2, with).define(50, "flows", defined, "v9").changed("b", 51, 52, with).
			ask(40, "b", gizmos, 405, admin).ask(60, "b", gizmos, 200, admin)
	}
	checkStories(t, name, []storyCase{
		{"direct answers are for a custom resource of the name", itself(tell(name), "gizmos"), unknown},
		{"direct answers are for what the server has built in", itself(tell(name), "hosts"), wrong("405 " + carried)},
		{"another server answers for a custom resource of the name", itself(tell(name).ask(20, "a", gizmos, 200, admin), "gizmos"), wrong("405 " + carried)},
		{"the same answer", across(direct(200), 200), right},
		{"another answer", across(direct(200), 405), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "405 " + carried + " though a could be reached",
			sentence: "It answered 405 after 10ms, 405 where servers that serve it carry it out; to such requests they gave 200 (1 times), though a"}},
		{"a redirection", across(direct(200), 307), wrong("307 " + carried)},
		{"the same refusal", across(direct(405), 405), right},
		{"another refusal", across(direct(405), 400), wrong("400 where servers that serve it answer 405")},
		{"carried out where it should be refused", across(direct(405), 200), wrong("200 where servers that serve it answer 405")},
		{"in a type that should be refused, which is for AnsweredInKind", across(direct(406, accepting(cbor)), 200, accepting(cbor)), none},
		{"on a page of a list", across(direct(200, at("/x?limit=5&continue=y")), 405, at("/x?limit=20")), wrong("405")},
		{"about an object of another name", across(direct(200, named), 405, named, at("/other")), wrong("405")},
		{"by another user", tell(name).ask(20, "a", gadgets, 405, by("reader")).ask(40, "b", gadgets, 405, admin), right},

		{"no server that serves it was asked", across(tell(name), 405), unknown},
		{"with another verb", across(direct(200, verb("get")), 405), unknown},
		{"with another query", across(direct(200, at("/x?dryRun=All")), 405), unknown},
		{"about one object", across(direct(200), 405, named), unknown},
		{"in a namespace", across(direct(200), 405, in("one")), unknown},
		{"of another media type", across(direct(200), 405, accepting(cbor)), unknown},
		{"with a body of another media type", across(direct(201, creating, sending(json)), 415, creating, sending(cbor)), unknown},
		{"over another transport", across(direct(101, watching(5), socket, took(5)), 405, watching(5)), unknown},
		{"of a part of it", across(direct(200).served("a", 25, doc("parts", line(gadgets, "status"))), 405, sub("status")), unknown},
		{"the only such answer was a peer's", across(direct(200).hop("a", 0, 10, false).hop("c", 2, 8, true), 405), unknown},

		{"404 for an object", across(direct(200, named), 404, named, missingObject), right},
		{"404 for an object that is created", across(direct(201, creating), 404, creating, missingObject), right},
		{"404 for an object, to a list", across(direct(200), 404, missingObject), wrong("404 object " + carried)},
		{"404 for objects, always", tell(name).askEvery(20, 29, "a", gadgets, 200, named).askEvery(40, 49, "b", gadgets, 404, named, missingObject),
			want{outcome: OutcomeFail, checked: 10, violations: 10, cause: "404 object " + carried}},
		{"404 for objects, always but once", tell(name).askEvery(20, 29, "a", gadgets, 200, named).askEvery(40, 49, "b", gadgets, 404, named, missingObject).ask(50, "b", gadgets, 200, named),
			want{outcome: OutcomePass, checked: 11}},
		{"404 for objects, and few answers of others", tell(name).askEvery(20, 28, "a", gadgets, 200, named).askEvery(40, 49, "b", gadgets, 404, named, missingObject),
			want{outcome: OutcomePass, checked: 10}},
		{"404 for objects, always, of few", tell(name).askEvery(20, 29, "a", gadgets, 200, named).askEvery(40, 48, "b", gadgets, 404, named, missingObject),
			want{outcome: OutcomePass, checked: 9}},
		{"404 for objects, as elsewhere once", tell(name).askEvery(20, 29, "a", gadgets, 200, named).ask(30, "a", gadgets, 404, named, missingObject).
			askEvery(40, 49, "b", gadgets, 404, named, missingObject), want{outcome: OutcomePass, checked: 10}},
		{"a conflict", across(direct(201, creating), 409, creating), right},
		{"a conflict of a list", across(direct(200), 409), wrong("409")},
		{"an expired token of a list", across(direct(200), 410, at("/x?limit=5&continue=y")), right},
		{"an expired resource version of a list", across(direct(200), 410, at("/x?resourceVersion=7")), right},
		{"an expired list of no version", across(direct(200), 410, at("/x?limit=5")), wrong("410 without a version " + carried)},
		{"an expired list of any version", across(direct(200), 410, at("/x?resourceVersion=0&continue=")), wrong("410 without a version " + carried)},
		{"an expired token of an object", across(direct(200, named), 410, named), wrong("410")},
		{"another kind of success", across(direct(201, creating), 200, creating), wrong("200 " + carried)},
		{"a success that depends on the object", across(direct(200, verb("patch")), 201, verb("patch")), right},
		{"a bad request without a body", across(direct(200), 400), wrong("400")},
		{"a bad body", across(direct(201, creating, sending(json)), 400, creating, sending(json)), right},
		{"bad bodies, always", tell(name).askEvery(20, 29, "a", gadgets, 201, creating, sending(json)).askEvery(40, 49, "b", gadgets, 400, creating, sending(json)),
			want{outcome: OutcomeFail, checked: 10, violations: 10, cause: "400"}},
		{"a body that is not understood", across(direct(201, creating, sending(json)), 415, creating, sending(json)), wrong("415")},
		{"a body that is not understood, in an older history", across(direct(201, creating), 415, creating), unknown},

		{"not authenticated, and the asked server knows the user", across(known("b"), 401), wrong("401 " + otherwise)},
		{"not authenticated by an extension apiserver, which does not trust the asked server",
			across(extension(known("b"), true).distrust(history.DistrustFrontProxy, "b", "a", 30, 60), 401), unknown},
		{"the same, and its certificate was wrong only before",
			across(extension(known("b"), true).distrust(history.DistrustFrontProxy, "b", "a", 20, 35), 401), wrong("401")},
		{"the same, and the serving certificate of the peer is wrong",
			across(extension(known("b"), true).distrust(history.DistrustServing, "b", "a", 30, 60), 401), wrong("401")},
		{"the same, of another server", across(extension(known("b"), true).distrust(history.DistrustFrontProxy, "c", "a", 30, 60), 401), wrong("401")},
		{"the same for a custom resource",
			across(extension(known("b"), false).distrust(history.DistrustFrontProxy, "b", "a", 30, 60), 401), wrong("401")},
		{"not authenticated, and the serving server knows the user", across(known("a"), 401), wrong("401 " + otherwise)},
		{"not authenticated, and another server knows the user", across(known("c"), 401), unknown},
		{"not authenticated, and another user is known", across(direct(200).ask(38, "b", widgets, 200, by("reader")), 401), unknown},
		{"not authenticated, and the user was known long before", across(direct(200).ask(29, "b", widgets, 200, admin), 401), unknown},
		{"not authenticated anywhere any more", across(known("b").ask(39, "b", widgets, 401, admin), 401), right},
		{"not authenticated where it is served", across(known("b").ask(39, "a", gadgets, 401, admin), 401), right},
		{"not authenticated at a server that is not involved", across(known("b").ask(39, "c", widgets, 401, admin), 401), wrong("401")},
		{"another user is not authenticated", across(known("b").ask(39, "b", widgets, 401, by("reader")), 401), wrong("401")},
		{"not authenticated long before", across(known("b").ask(29, "b", widgets, 401, admin), 401), wrong("401")},
		{"not authenticated, as the peer says", across(known("b"), 401).hop("b", 0, 10, false, as("admin")).hop("a", 2, 8, true, unauthenticated),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "answered 401 after 10ms (a answered 401: Authentication failed, attempted: x509), 401 " + otherwise}},
		{"without etcd at the asked server", across(known("b").cut("b", "etcd", 35, 45), 401), none},
		{"without etcd at the serving server", across(known("b").cut("a", "etcd", 35, 45), 401), none},
		{"without etcd at another server", across(known("b").cut("c", "etcd", 35, 45), 401), wrong("401")},
		{"without etcd long before", across(known("b").cut("b", "etcd", 15, 25), 401), wrong("401")},
		{"without etcd, and refused for another reason", across(known("b").cut("b", "etcd", 35, 45), 405), wrong("405")},
		{"throttled, and others are not", across(known("b"), 429), wrong("429 " + otherwise)},
		{"throttled like others", across(known("b").ask(39, "b", widgets, 429, admin), 429), right},
		{"throttled while the machine is overloaded", across(known("b"), 429).slow(35, 45, "a", "b", "c"),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "overloaded"}},

		{"forbidden by the authorizer, which is for AuthorizedAlike", across(direct(200), 403, forbidden), none},
		{"forbidden as another user", across(direct(200), 403, func(o *history.Operation) {
			o.Message = `gadgets is forbidden: User "system:anonymous" cannot list resource "gadgets"`
		}), wrong("403 where servers that serve it give this user another answer")},
		{"forbidden by an admission plugin", across(direct(201, creating), 403, creating, denied), wrong("403")},
		{"forbidden by an admission plugin, as elsewhere", across(direct(403, creating, denied), 403, creating, denied), right},
		{"forbidden by an admission plugin, and another user was not", across(tell(name).ask(20, "a", gadgets, 201, creating, by("reader")), 403, creating, denied), unknown},
		{"forbidden, and the message was truncated", across(direct(200), 403, failed(history.FailureReset)), unknown},

		{"an upgrade", across(direct(101, watching(5), socket, took(5)), 101, watching(5), socket, took(5)), right},
		{"200 in place of an upgrade", across(direct(101, watching(5), socket, took(5)), 200, watching(5), socket, took(5)), wrong("200 where servers that serve it answer 101")},
		{"200 in place of an upgrade, for an object that is missing elsewhere", across(direct(404, named, socket, missingObject), 200, named, socket),
			wrong("200 where servers that serve it carry it out")},
		{"an upgrade that the client did not ask for", across(direct(200, watching(5), took(5)), 101, watching(5), took(5)), wrong("101 " + carried)},
		{"an upgrade that carries nothing that can be read", across(direct(101, watching(5), socket, took(5)), 101, watching(5), socket, failed(history.FailureOther)),
			wrong("101 and then no stream")},
		{"an upgrade that ends at once, which is for WatchesLast", across(direct(101, watching(5), socket, took(5)), 101, watching(5), socket), right},

		{"the asked server serves it", direct(200).ask(40, "b", widgets, 405, admin), none},
		{"nobody serves it", direct(200).ask(40, "b", ghosts, 405, admin), none},
		{"the asked server is starting", across(direct(200).startUnknown("b", 39.5), 405), none},
		{"its proxy is off", across(direct(200).off("b", 30, 50), 405), none},
		{"an error, which is for others", across(direct(200), 503), none},
		{"no answer, which is for others", across(direct(200), 0, failed(history.FailureReset)), none},
		{"404 for the resource, which is for others", across(direct(200), 404), none},
		{"404, and its subject was truncated", across(direct(200, named), 404, named, unsaid, failed(history.FailureReset)), unknown},
		{"canceled", across(direct(200), 405, failed(history.FailureCanceled)), none},
		{"canceled, and forbidden", across(direct(201, creating), 403, creating, denied, failed(history.FailureCanceled)), none},
		{"the document of a version", direct(200).ask(40, "b", versionOf(gadgets).GVR, 405, admin), none},
		{"the asked server knows that it was deleted", across(tell(name).served("b", 25, newDoc).served("b", 30, oldDoc).ask(20, "a", gadgets, 200, admin), 405), unknown},
		{"under too little pressure", across(direct(200), 200).need(history.Pressure{Skewed: 2}),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 skewed operations"}},
	})
}

// Custom resources appear and disappear without a restart, and a server may refuse requests for
// them meanwhile.
func TestAnsweredAlikeOfCustomResources(t *testing.T) {
	const name = "AnsweredAlike"
	custom := history.GVR{Group: "example.com", Version: "v1", Resource: "widgets"}
	with := doc("custom", line(pods), line(widgets), line(custom))
	defined := func(at float64) *story {
		return tell(name).served("a", at, with).ask(at+12, "a", custom, 201, verb("create")).ask(at+12, "a", custom, 101, watching(5), socket, took(5))
	}
	refused := func(s *story) *story { return s.ask(60, "b", custom, 405, verb("create")) }
	upgraded := func(s *story, options ...func(*history.Operation)) *story {
		return s.ask(60, "b", custom, 101, append([]func(*history.Operation){watching(5), socket, took(0.1)}, options...)...)
	}
	right, none := want{outcome: OutcomePass, checked: 1}, want{outcome: OutcomeInconclusive, reason: notExercised}
	wrong := func(cause string) want {
		return want{outcome: OutcomeFail, checked: 1, violations: 1, cause: cause}
	}
	checkStories(t, name, []storyCase{
		{"refused", refused(defined(20)), wrong("405 where servers that serve it carry it out")},
		{"refused while it is being defined", refused(defined(51)), want{outcome: OutcomeInconclusive, reason: notExercised, fact: "its definition was changing: 1"}},
		{"refused while it is being deleted", refused(defined(20).served("a", 65, newDoc)), none},
		{"refused long before it is deleted", refused(defined(20).served("a", 75, newDoc)), wrong("405")},
		{"something else was being defined", refused(defined(20).served("a", 55, doc("more", line(pods), line(widgets), line(custom), line(gadgets)))), wrong("405")},
		{"a built-in resource appears with a process", blank(name).start("a", 0, oldDoc).start("b", 0, oldDoc).served("a", 55, newDoc).ask(70, "a", gadgets, 201, verb("create")).ask(60, "b", gadgets, 405, verb("create")), wrong("405")},

		{"an upgrade that ends at once", upgraded(defined(20)), wrong("101 and then no stream")},
		{"an upgrade that breaks off at once", upgraded(defined(20), failed(history.FailureReset)), wrong("101 and then no stream")},
		{"an upgrade that ends after an event", upgraded(defined(20), events(1)), right},
		{"an upgrade that ends later", upgraded(defined(20), took(1.1)), right},
		{"an upgrade that is to end at once", upgraded(defined(20), at("/x?watch=true&timeoutSeconds=1"), took(0.95)), right},
		{"an upgrade that the client ends", upgraded(defined(20), failed(history.FailureTimeout)), right},
		{"an upgrade, and the peer is killed", upgraded(defined(20).kill("a", 63)), none},
		{"an upgrade, and another server is killed", upgraded(defined(20).kill("c", 63)), wrong("101 and then no stream")},
		{"an upgrade, and the link is cut shortly afterwards", upgraded(defined(20).cut("b", "a", 63, 70)), right},
		{"an upgrade while it is being defined", upgraded(defined(51)), none},
		{"an upgrade, and the servers' processes are unknown", external(upgraded(defined(20))), right},
	})
}
