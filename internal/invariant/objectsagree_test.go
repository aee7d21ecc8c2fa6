package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// read makes an operation one that read an object.
func read(object, headers string) func(*history.Operation) {
	return func(o *history.Operation) {
		if o.Verb != "patch" {
			o.Verb = "get"
		}
		o.Name, o.Path, o.Object, o.Headers = "x", o.Path+"/x", object, headers
	}
}

func TestObjectsAgree(t *testing.T) {
	const (
		name  = "ObjectsAgree"
		state = `"7" sha256:aa`
		json  = "Cache-Control: no-cache, private\nContent-Type: application/json"
		none  = "no object was asked for both at a peer and through another server"
	)
	through := func(object, headers string, options ...func(*history.Operation)) *story {
		return tell(name).ask(20, "b", gadgets, 200, append(options, read(object, headers))...).hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200))
	}
	from := func(s *story, server, object, headers string, options ...func(*history.Operation)) *story {
		return s.ask(21, server, gadgets, 200, append(options, read(object, headers))...).hop(server, 0, 10, false, answering(200))
	}
	checkStories(t, name, []storyCase{
		{"as the peer returns it", from(through(state, json), "a", state, json),
			want{outcome: OutcomePass, checked: 1, fact: "objects from a peer and through another server: 1"}},
		{"another body", from(through(`"7" sha256:bb`, json), "a", state, json),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "not as the peer returns it (body)",
				sentence: "The request was handled by b from 20s to 20.01s, a from 20.002s to 20.008s: to its own client, a returned this object otherwise: with other bytes."}},
		{"a header less", from(through(state, "Content-Type: application/json"), "a", state, json),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "not as the peer returns it (header Cache-Control)",
				sentence: "with the header Cache-Control: no-cache, private, and not with no header Cache-Control"}},
		{"a header more", from(through(state, json+"\nWarning: 299"), "a", state, json),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "(header Warning)", sentence: "with no header Warning, and not with the header Warning: 299"}},
		{"another value of a header", from(through(state, "Cache-Control: public\nContent-Type: application/json"), "a", state, json),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "(header Cache-Control)"}},
		{"the peer was asked before", from(tell(name), "a", state, json).ask(22, "b", gadgets, 200, read(`"7" sha256:bb`, json)).
			hop("b", 0, 10, false, answering(200)).hop("a", 2, 8, true, answering(200)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"another state of the object", from(through(`"6" sha256:bb`, json), "a", state, json),
			want{outcome: OutcomeInconclusive, reason: none, fact: "objects through another server only, in their state: 1"}},
		{"from another peer, which may be of another version", from(through(`"7" sha256:bb`, json), "c", state, json),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"in another form", from(through(`"7" sha256:bb`, json, accepting("application/yaml")), "a", state, json),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"of a write that was only tried", from(through(`"7" sha256:bb`, json, verb("patch")), "a", state, json, verb("patch")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "(body)"}},
		{"of a write, and of a read", from(through(`"7" sha256:bb`, json, verb("patch")), "a", state, json),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"another object", from(through(`"7" sha256:bb`, json), "a", state, json, func(o *history.Operation) { o.Path += "-other" }),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"the peer, too, passed it on", through(`"7" sha256:bb`, json).ask(21, "a", gadgets, 200, read(state, json)).
			hop("a", 0, 10, false, answering(200)).hop("c", 2, 8, true, answering(200)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"the peer's own record is lost", through(`"7" sha256:bb`, json).ask(21, "a", gadgets, 200, read(state, json)),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"after a peer that failed", from(tell(name).ask(20, "b", gadgets, 200, read(`"7" sha256:bb`, json)).hop("b", 0, 10, false, answering(200)).
			hop("c", 1, 2, true, answering(503)).hop("a", 3, 8, true, answering(200)), "a", state, json),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"two peers have answered it", from(tell(name).ask(20, "b", gadgets, 200, read(`"7" sha256:bb`, json)).hop("b", 0, 10, false, answering(200)).
			hop("c", 1, 2, true, answering(200)).hop("a", 3, 8, true, answering(200)), "a", state, json),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"nothing was compared", tell(name).ask(20, "b", gadgets, 200).hop("b", 0, 10, false).hop("a", 2, 8, true),
			want{outcome: OutcomeInconclusive, reason: none}},
		{"under too little pressure", from(through(state, json), "a", state, json).need(history.Pressure{Skewed: 2}),
			want{outcome: OutcomeInconclusive, checked: 1, reason: "1 of at least 2 skewed operations"}},
	})
}
