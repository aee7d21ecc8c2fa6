package invariant

import (
	"fmt"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// watching turns an operation into a watch that was asked to last for so many seconds.
func watching(seconds int) func(*history.Operation) {
	return func(o *history.Operation) {
		o.Verb, o.Body, o.Path = "watch", history.BodyEvents, fmt.Sprintf("/apis/apps/v2/gadgets?allowWatchBookmarks=true&timeoutSeconds=%d&watch=true", seconds)
	}
}

func events(n int) func(*history.Operation) { return func(o *history.Operation) { o.Events = n } }

func TestWatchesLast(t *testing.T) {
	const name = "WatchesLast"
	custom := history.GVR{Group: "example.com", Version: "v1", Resource: "widgets"}
	none := want{outcome: OutcomeInconclusive, reason: notExercised}
	early := func(s *story, options ...func(*history.Operation)) *story {
		return s.ask(40, "b", gadgets, 200, append([]func(*history.Operation){watching(5), took(1)}, options...)...)
	}
	two := func() *story { return blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc) }
	created := func(s *story, at float64, options ...func(*history.Operation)) *story {
		return s.ask(at, "c", gadgets, 201, append([]func(*history.Operation){verb("create")}, options...)...)
	}
	silent := func(options ...func(*history.Operation)) *story {
		return tell(name).ask(40, "b", gadgets, 200, append([]func(*history.Operation){watching(10), took(10.1)}, options...)...)
	}
	checkStories(t, name, []storyCase{
		{"as long as it was asked to", tell(name).ask(40, "b", gadgets, 200, watching(5), took(5.01)),
			want{outcome: OutcomePass, checked: 1, fact: "watches passed on that lasted: 1"}},
		{"ended at once", early(tell(name)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it ended before its timeout, though a could be reached", sentence: "it ended before its timeout"}},
		{"ended shortly before its end", early(tell(name), took(4.5)), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it ended before its timeout"}},
		{"an upgraded one ended at once", early(tell(name), status(101)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it ended before its timeout"}},
		{"broken off", early(tell(name), failed(history.FailureReset)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "it broke off before its timeout"}},
		{"broken off when its time was over", tell(name).ask(40, "b", gadgets, 200, watching(5), took(5.01), failed(history.FailureReset)),
			want{outcome: OutcomePass, checked: 1}},
		{"ended at once, on a slow link", early(tell(name).fault("latency", "b", "a", 15, 100, false)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"for a reason not recorded", early(tell(name), failed(history.FailureOther)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"never established", tell(name).ask(40, "b", gadgets, 503, watching(5)), none},
		{"not asked to last for any time", tell(name).ask(40, "b", gadgets, 200, verb("watch")), none},
		{"the client ended it", early(tell(name), failed(history.FailureCanceled)), none},
		{"the client gave up", early(tell(name), failed(history.FailureTimeout)), none},
		{"not passed on", tell(name).ask(40, "b", widgets, 200, watching(5), took(1)), none},
		{"of a custom resource", blank(name).start("a", 0, doc("custom", line(pods), line(custom))).start("b", 0, oldDoc).ask(40, "b", custom, 200, watching(5), took(1)), none},
		{"the peer was killed", early(tell(name).kill("a", 40.9)), none},
		{"the peer was asked to stop shortly afterwards", early(tell(name).stop("a", 43)), none},
		{"the asked server was asked to stop shortly afterwards", early(tell(name).stop("b", 43)), none},
		{"the link was cut, and healed shortly before", early(tell(name).cut("b", "a", 30, 39)), none},
		{"the link was cut, and healed long before", early(tell(name).cut("b", "a", 20, 29)), want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the client's link is slow", early(tell(name).fault("latency", "client", "b", 15, 100, false)), none},
		{"the asked server's etcd is slow", early(tell(name).fault("latency", "b", "etcd", 15, 100, false)), none},
		{"the peer's etcd is slow", early(tell(name).fault("latency", "a", "etcd", 15, 100, false)), none},
		{"another peer was killed", early(two().kill("c", 40.9)), none},
		{"another peer was killed, and this one recorded the request", early(two().kill("c", 40.9)).hop("b", 0, 1000, false).hop("a", 2, 999, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the servers' processes are unknown", external(early(tell(name))), none},

		{"an object was created meanwhile, and it saw it", created(silent(events(1)), 42), want{outcome: OutcomePass, checked: 1, fact: "while an object was created: 1"}},
		{"an object was created meanwhile, and it saw nothing", created(silent(), 42),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "no event, though an object was created meanwhile"}},
		{"it saw nothing, and nothing happened", silent(), want{outcome: OutcomePass, checked: 1, fact: "while an object was created: 0"}},
		{"just before its end", created(silent(), 48), want{outcome: OutcomePass, checked: 1}},
		{"just as it began", created(silent(), 40.5), want{outcome: OutcomePass, checked: 1}},
		{"in another namespace", created(silent(in("one")), 42, in("other")), want{outcome: OutcomePass, checked: 1}},
		{"as a dry run", created(silent(), 42, at("/x?dryRun=All")), want{outcome: OutcomePass, checked: 1}},
		{"of objects with a label", created(silent(at("/x?watch=true&timeoutSeconds=10&labelSelector=x")), 42), want{outcome: OutcomePass, checked: 1}},
		{"on a slow link", created(silent().fault("latency", "b", "a", 15, 100, false), 42), want{outcome: OutcomePass, checked: 1}},
	})
}

func withContent(c history.Content) func(*history.Operation) {
	return func(o *history.Operation) { o.Body, o.Content = history.BodyList, c }
}

func TestAnsweredInFull(t *testing.T) {
	const name = "AnsweredInFull"
	none := want{outcome: OutcomeInconclusive, reason: notExercised}
	checkStories(t, name, []storyCase{
		{"whole", tell(name).ask(20, "a", gadgets, 200, withContent(history.ContentWhole)).ask(20, "b", gadgets, 200, withContent(history.ContentWhole)),
			want{outcome: OutcomePass, checked: 2, fact: "responses to requests that had to be passed on: 1"}},
		{"cut off, and looks complete", tell(name).ask(20, "b", gadgets, 200, withContent(history.ContentBroken)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "looks complete", sentence: "as if it were complete"}},
		{"cut off, and seen to be", tell(name).ask(20, "b", gadgets, 200, withContent(history.ContentBroken), failed(history.FailureReset)), none},
		{"an error", tell(name).ask(20, "b", gadgets, 503, withContent(history.ContentBroken)), none},
		{"not modified", tell(name).ask(20, "b", gadgets, 304), none},
		{"an older history", tell(name).ask(20, "b", gadgets, 200, withContent("")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"an older history, of a table", tell(name).ask(20, "b", gadgets, 200, func(o *history.Operation) { o.Body = history.BodyTable }),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
	})
}
