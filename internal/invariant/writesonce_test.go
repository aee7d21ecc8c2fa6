package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestWritesOnce(t *testing.T) {
	const name = "WritesOnce"
	write := func(v string, status int, options ...func(*history.Operation)) *story {
		return tell(name).ask(20, "b", gadgets, status, append(options, verb(v))...)
	}
	path := func(p string) func(*history.Operation) { return func(o *history.Operation) { o.Path = p } }
	ok, created, unavailable, conflict := answering(200), answering(201), answering(503), answering(409)
	nobody := want{outcome: OutcomeInconclusive, reason: "no write was handled by a second server"}
	unknown := want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}
	checkStories(t, name, []storyCase{
		{"the asked server passes the answer back", write("create", 201).hop("b", 0, 10, false, created).hop("a", 2, 8, true, created),
			want{outcome: OutcomePass, checked: 1, fact: "writes passed on and carried out: 1"}},
		{"the order of the records does not matter", write("create", 201).hop("a", 2, 8, true, created).hop("b", 0, 10, false, created),
			want{outcome: OutcomePass, checked: 1}},
		{"refused", write("create", 409).hop("b", 0, 10, false, conflict).hop("a", 2, 8, true, conflict),
			want{outcome: OutcomePass, checked: 1, fact: "writes passed on and carried out: 0"}},
		{"a second peer after one that refused", write("patch", 200).hop("b", 0, 10, false, ok).hop("c", 1, 4, true, unavailable).hop("a", 5, 9, true, ok),
			want{outcome: OutcomePass, checked: 1}},
		{"passed on twice, carried out once", write("patch", 200).hop("b", 0, 10, false, ok).hop("c", 1, 9, true, ok).hop("a", 2, 8, true, ok),
			want{outcome: OutcomePass, checked: 1}}, // NoLoop rules on this
		{"carried out after the asked server had given up", write("patch", 503).hop("b", 0, 10, false, unavailable).hop("a", 2, 500, true, ok),
			want{outcome: OutcomePass, checked: 1}},
		{"a peer whose answer is not known, and no other", write("patch", 503).hop("b", 0, 10, false, unavailable).hop("a", 2, 2, true),
			want{outcome: OutcomePass, checked: 1}},
		{"sent again by the client, and carried out both times",
			write("create", 201).hop("b", 0, 4, false, unavailable).hop("a", 1, 3, true, created).hop("b", 5, 10, false, created).hop("a", 6, 9, true, created),
			want{outcome: OutcomePass, checked: 1, fact: "writes sent again by the client: 1"}},
		{"sent again while the first try is still under way",
			write("create", 201).hop("b", 0, 10, false, created).hop("a", 1, 9, true, created).hop("b", 2, 8, false, created).hop("a", 3, 7, true, created),
			want{outcome: OutcomePass, checked: 1, fact: "writes sent again by the client: 1"}},
		{"the asked server ended before it recorded the write", write("create", 0).hop("b", 0, 0, false).hop("a", 2, 8, true, created),
			want{outcome: OutcomePass, checked: 1}},
		{"the asked server's record is lost", write("create", 0).hop("a", 2, 8, true, created),
			want{outcome: OutcomePass, checked: 1}},
		{"the same record twice", write("create", 201).hop("b", 0, 10, false, created).hop("a", 2, 8, true, created).hop("a", 2, 8, true, created),
			want{outcome: OutcomePass, checked: 1}},

		{"a second peer after one that had carried it out", write("create", 201).hop("b", 0, 10, false, created).hop("c", 1, 4, true, created).hop("a", 5, 9, true, created),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it was carried out by c and by a",
				sentence: "handled by b from 20s to 20.01s with 201, c from 20.001s to 20.004s with 201, a from"}},
		{"a second peer while the first is still busy", write("update", 200).hop("b", 0, 10, false, ok).hop("c", 1, 500, true, ok).hop("a", 5, 9, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "carried out by c and by a"}},
		{"hedged: both peers at once", write("patch", 200).hop("b", 0, 10, false, ok).hop("c", 1, 6, true, ok).hop("a", 3, 9, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "carried out by c and by a"}},
		{"hedged, and one of the peers passes it on again",
			write("patch", 200).hop("b", 0, 30, false, ok).hop("a", 1, 10, true, ok).hop("c", 2, 20, true, ok).hop("b", 3, 9, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "carried out by a and by b"}},
		{"the asked server carries it out itself while a peer is still busy", write("patch", 200).hop("b", 0, 10, false, ok).hop("a", 1, 500, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "carried out by b and by a"}},
		{"the same peer again", write("delete", 200).hop("b", 0, 10, false, ok).hop("a", 1, 4, true, ok).hop("a", 5, 9, true, answering(202)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "carried out by a and by a"}},
		{"all of them twice", write("deletecollection", 200).hop("b", 0, 10, false, ok).hop("a", 1, 4, true, ok).hop("a", 5, 9, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"carried out twice, and the client got a failure", write("patch", 503).hop("b", 0, 10, false, unavailable).hop("c", 1, 4, true, ok).hop("a", 5, 50, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "b from 20s to 20.01s with 503"}},
		{"sent twice, carried out three times",
			write("patch", 200).hop("b", 0, 4, false, unavailable).hop("a", 1, 3, true, ok).hop("b", 5, 20, false, ok).hop("c", 6, 9, true, ok).hop("a", 10, 19, true, ok),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "by a and by c and by a, though its client sent it 2 times"}},

		{"a second peer while the first is still busy: a chain if the sender of each hop were unknown",
			write("update", 200).hop("b", 0, 30, false, ok).hop("c", 1, 29, true, ok, passedBy("b")).hop("a", 10, 15, true, ok, passedBy("b")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "carried out by c and by a"}},

		{"the answer of one of two peers is unknown", write("patch", 200).hop("b", 0, 10, false, ok).hop("c", 1, 1, true).hop("a", 5, 9, true, ok), unknown},
		{"no server that may have carried it out recorded its answer", write("patch", 200).hop("b", 0, 10, false, ok).hop("a", 2, 2, true), unknown},
		{"carried out twice, and it is unknown how often it was sent", write("patch", 0).hop("c", 1, 4, true, ok).hop("a", 5, 9, true, ok), unknown},
		{"no server's account", write("patch", 200),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "no write was handled by a second server"}},

		{"a dry run",
			write("patch", 200, path("/apis/apps/v2/gadgets/x?force=true&dryRun=All")).hop("b", 0, 10, false, ok).hop("c", 1, 4, true, ok).hop("a", 5, 9, true, ok), nobody},
		{"a read", write("list", 200).hop("b", 0, 10, false, ok).hop("c", 1, 4, true, ok).hop("a", 5, 9, true, ok), nobody},
		{"carried out by the asked server", write("create", 201).hop("b", 0, 10, false, created), nobody},
		{"carried out by the asked server each time that it was sent", write("create", 201).hop("b", 0, 3, false, created).hop("b", 4, 10, false, created), nobody},
		{"refused before it could be passed on", write("create", 401), nobody},
	})
}
