package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestAvailable(t *testing.T) {
	const name = "Available"
	// c serves the same as a.
	two := func() *story { return blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc) }
	late := func() *story { return blank(name).start("b", 0, oldDoc).start("c", 0, oldDoc).start("a", 20, newDoc) }
	// A server serves the gadgets until 50.
	dropped := func(by string) *story {
		s := blank(name).start("a", 0, newDoc)
		for _, other := range []string{"b", "c"} {
			if other == by {
				s.start(other, 0, newDoc).changed(other, 50, 51, oldDoc)
			} else {
				s.start(other, 0, oldDoc)
			}
		}
		return s
	}
	withGadgets := doc("with gadgets", line(pods, "status"), line(widgets), line(gadgets))
	withStatus := doc("with status", line(pods, "status"), line(widgets), line(gadgets, "status"))
	broken := func(s *story, status int) *story {
		return s.ask(20, "b", gadgets, status, took(0.5), failed(history.FailureReset))
	}
	checkStories(t, name, []storyCase{
		{"a read that it has answered is refused", tell(name).ask(20, "b", widgets, 200).ask(21, "b", widgets, 400),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "400"}},
		{"a read that it has answered gets 201", tell(name).ask(20, "b", widgets, 200).ask(21, "b", widgets, 201),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "201"}},
		{"500 for what it has answered", tell(name).ask(20, "b", widgets, 200).ask(21, "b", widgets, 500).hop("b", 0, 10, false, answering(500)),
			want{outcome: OutcomeFail, checked: -1, violations: 1, cause: "500"}},
		{"another process has answered it", tell(name).ask(20, "b", widgets, 200).stop("b", 30).start("b", 32, oldDoc).ask(60, "b", widgets, 400), want{outcome: OutcomePass, checked: 2}},
		{"another user is refused", tell(name).ask(20, "b", widgets, 200).ask(21, "b", widgets, 403, by("eve")), want{outcome: OutcomePass, checked: 2}},
		{"the object is gone", tell(name).ask(20, "b", widgets, 200, verb("get"), ofName("x")).ask(21, "b", widgets, 404, verb("get"), ofName("x"), missingObject),
			want{outcome: OutcomePass, checked: 2}},
		{"an answer after 31 s", tell(name).ask(20, "b", widgets, 200, took(31)), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "answered too late"}},
		{"a peer's answer after 31 s", tell(name).ask(20, "b", gadgets, 200, took(31)), want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "answered too late"}},
		{"a watch of 31 s", tell(name).ask(20, "b", widgets, 200, verb("watch"), took(31)), want{outcome: OutcomePass, checked: 1}},
		{"served by itself and by a peer", tell(name).ask(20, "b", widgets, 200).ask(20, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 2, fact: "proxied operations that failed: 0 of 1"}},
		{"503 though the peer could be reached", tell(name).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though a could be reached", fact: "1 of 1 (100.00 %)"}},
		{"no failover", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).kill("a", 30).askEvery(31, 37, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 7, violations: 7, cause: "503 though c could be reached"}},
		{"503 while the peer is stopping and serves on", tell(name).drain("a", 50, 70, 75).ask(50.3, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though a could be reached"}},
		{"503 while the peer may have ended", tell(name).drain("a", 50, 70, 75).ask(60, "b", gadgets, 200).ask(72, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"500 of what it serves itself", tell(name).ask(20, "b", widgets, 500),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "500 though the server itself serves it"}},
		{"discovery fails", tell(name).ask(20, "b", history.GVR{}, 503, verb(history.VerbDiscovery)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a broken connection", tell(name).ask(20, "b", widgets, 0, failed(history.FailureReset)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "connection broken"}},
		{"an incomplete answer", tell(name).ask(20, "b", widgets, 200, failed(history.FailureReset)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: "did not finish"}},
		{"an established watch that breaks", tell(name).ask(20, "b", widgets, 200, verb("watch"), failed(history.FailureReset)),
			want{outcome: OutcomePass, checked: 1}},
		{"a broken connection while the client's link was cut", tell(name).cut("client", "b", 15, 30).ask(20, "b", widgets, 0, failed(history.FailureReset)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the asked server was killed", tell(name).kill("b", 20).ask(19.99, "b", widgets, 0, failed(history.FailureReset), took(0.1)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the asked server was paused", tell(name).pause("b", 20, 40).ask(21, "b", widgets, 0, failed(history.FailureTimeout), took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the asked server was stopping", tell(name).stop("b", 20).ask(20.5, "b", widgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the peer was cut off", tell(name).cut("b", "a", 15, 30).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the peer was slow, but could be reached", tell(name).fault("latency", "b", "a", 15, 30, false).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the link to the peer broke connections", tell(name).fault("limit-data", "b", "a", 15, 30, false).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the peer has lost etcd", tell(name).cut("a", "etcd", 15, 30).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, fact: "tolerated while knowledge spread: 0", reason: "not exercised"}},
		{"the asked server has lost etcd", tell(name).cut("b", "etcd", 15, 30).ask(20, "b", widgets, 500),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"cut while the request was under way", tell(name).cut("b", "a", 20.5, 30).ask(20, "b", gadgets, 503, took(1)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"503 while knowledge spreads", tell(name).ask(5, "b", gadgets, 503).ask(20, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"503 soon after the asked server stopped serving it", dropped("b").ask(55, "b", gadgets, 503).ask(80, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"503 long after that", dropped("b").ask(62, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after another server stopped serving it", dropped("c").ask(55, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after the asked server stopped serving another resource", tell(name).changed("b", 50, 51, doc("pods", line(pods, "status"))).ask(55, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 for a subresource, soon after the asked server's own resource of the name was deleted",
			tell(name).define(40, "apps", "gadgets", "v2").changed("b", 41, 42, withGadgets).define(50, "apps", "gadgets").changed("b", 51, 52, oldDoc).
				changed("a", 1, 2, withStatus).ask(55, "b", gadgets, 503, sub("status")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"503 for a subresource, soon after its own resource of another name was deleted",
			tell(name).define(40, "apps", "gauges", "v2").changed("b", 41, 42, withGadgets).define(50, "apps", "gauges").changed("b", 51, 52, oldDoc).
				changed("a", 1, 2, withStatus).ask(55, "b", gadgets, 503, sub("status")),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 for a subresource, long after that",
			tell(name).define(40, "apps", "gadgets", "v2").changed("b", 41, 42, withGadgets).define(50, "apps", "gadgets").changed("b", 51, 52, oldDoc).
				changed("a", 1, 2, withStatus).ask(65, "b", gadgets, 503, sub("status")),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after the peer could be reached again", tell(name).cut("b", "a", 15, 30).ask(39, "b", gadgets, 503).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"503 long after that", tell(name).cut("b", "a", 15, 30).ask(41, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after it was resumed", tell(name).pause("a", 15, 30).ask(39, "b", gadgets, 503).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"503 soon after one of two could be reached again", two().cut("b", "a", 15, 30).ask(39, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though a, c could be reached"}},
		{"500 for its own resource, recorded by itself", tell(name).ask(20, "b", gadgets, 200).ask(20, "b", widgets, 500).hop("b", 0, 9, false, answering(500)),
			want{outcome: OutcomePass, checked: 1}},
		{"500 for its own resource, which it passed on", tell(name).ask(20, "b", widgets, 500).hop("b", 0, 9, false, answering(500)).hop("a", 1, 8, true, answering(500)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 for its own resource, recorded by itself", tell(name).ask(20, "b", widgets, 503).hop("b", 0, 9, false, answering(503)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"500 for a peer's resource, recorded by the asked server", tell(name).ask(20, "b", gadgets, 500).hop("b", 0, 9, false, answering(500)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"500 of what it serves itself, soon after a peer could be reached again", tell(name).cut("b", "a", 15, 30).ask(39, "b", widgets, 500),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "500 though the server itself serves it"}},
		{"503 soon after the asked server was cut off from etcd, when the new one came", late().cut("b", "etcd", 15, 40).ask(49, "b", gadgets, 503).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"503 long after that", late().cut("b", "etcd", 15, 40).ask(51, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after the asked server was cut off from etcd, having heard of the peer before", tell(name).cut("b", "etcd", 15, 40).ask(45, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after the peer was cut off from etcd", tell(name).cut("a", "etcd", 15, 40).ask(49, "b", gadgets, 503).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"503 long after that", tell(name).cut("a", "etcd", 15, 40).ask(51, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 soon after one of two peers was cut off from etcd", two().cut("a", "etcd", 15, 40).ask(49, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 of a server that has just become ready", tell(name).stop("b", 30).start("b", 33, oldDoc).ask(40, "b", gadgets, 503).ask(60, "b", gadgets, 200),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"only the link from the peer back was cut and healed", tell(name).cut("a", "b", 15, 30).ask(39, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"an answer that breaks off when one of two is cut off", broken(two().cut("b", "a", 20.2, 30), 200),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"an answer that breaks off when one of two is killed", broken(two().kill("a", 20.2), 200),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"an answer that breaks off for no reason", broken(two(), 200),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "connection broken though a, c could be reached"}},
		{"an answer that had not begun when one of two was cut off", broken(two().cut("b", "a", 20.2, 30), 0),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "connection broken though c could be reached"}},
		{"a failure that breaks off when one of two is cut off", broken(two().cut("b", "a", 20.2, 30), 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though c could be reached"}},
		{"an answer that breaks off when one is cut off that does not serve it", broken(tell(name).cut("b", "c", 20.2, 30), 200),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"an answer of its own that breaks off when a peer is cut off",
			tell(name).cut("b", "a", 20.2, 30).ask(20, "b", widgets, 200, took(0.5), failed(history.FailureReset)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "connection broken though the server itself serves it"}},
		{"the one that is cut off was answering", broken(two().cut("b", "a", 20.2, 30), 200).hop("b", 0, 500, false).hop("a", 2, 490, true),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the other one was answering", broken(two().cut("b", "a", 20.2, 30), 200).hop("b", 0, 500, false).hop("c", 2, 490, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "connection broken though c could be reached"}},
		{"a write that reached the peer that is cut off", two().cut("b", "a", 20.2, 30).ask(20, "b", gadgets, 503, took(0.5), verb("create")).hop("b", 0, 500, false).hop("a", 2, 490, true),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a write that reached the other peer", two().cut("b", "a", 20.2, 30).ask(20, "b", gadgets, 503, took(0.5), verb("create")).hop("b", 0, 500, false).hop("c", 2, 490, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though c could be reached"}},
		{"a write that no peer recorded, to a peer that was cut off meanwhile", two().cut("b", "a", 20.2, 30).ask(20, "b", gadgets, 503, took(0.5), verb("create")).hop("b", 0, 500, false),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a write that no peer recorded, to a peer that began to stop meanwhile", two().stop("a", 20.2).ask(20, "b", gadgets, 503, took(0.5), verb("create")),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a write that no peer recorded, to a peer that does not answer", two().pause("a", 15, 40).ask(30, "b", gadgets, 503, verb("create")),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a write over a silent link, which no peer recorded", two().fault("timeout", "b", "a", 15, 40, true).ask(30, "b", gadgets, 503, verb("create")),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a write when all peers could be reached", two().ask(20, "b", gadgets, 503, verb("create")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though a, c could be reached"}},
		{"a write when the peer refused every connection", two().cut("b", "a", 15, 40).ask(30, "b", gadgets, 503, verb("create")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though c could be reached"}},
		{"a write when the peer was down", two().kill("a", 15).ask(30, "b", gadgets, 503, verb("create")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though c could be reached"}},
		{"a write when a link was silent that is not the asked server's", two().fault("timeout", "c", "a", 15, 40, true).ask(30, "b", gadgets, 503, verb("create")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though a, c could be reached"}},
		{"a read when the peer does not answer", two().pause("a", 15, 40).ask(30, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though c could be reached"}},
		{"a write of its own when the peer does not answer", two().pause("a", 15, 40).ask(30, "b", widgets, 503, verb("create")),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though the server itself serves it"}},
		{"a write that succeeds while a peer does not answer", two().pause("a", 15, 40).ask(30, "b", gadgets, 201, verb("create")),
			want{outcome: OutcomePass, checked: 1}},
		{"a read that reached the peer that is cut off", two().cut("b", "a", 20.2, 30).ask(20, "b", gadgets, 503, took(0.5)).hop("b", 0, 500, false).hop("a", 2, 490, true),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 though c could be reached"}},
		{"a kubelet's 502 is not the apiserver's", tell(name).ask(20, "b", pods, 502, sub("log")).ask(20, "b", pods, 200),
			want{outcome: OutcomePass, checked: 1}},
		{"a write that fails without a reason", tell(name).ask(20, "b", widgets, 500, verb("create"), func(o *history.Operation) { o.Body = history.BodyStatus }),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a write that fails for a reason", tell(name).ask(20, "b", widgets, 500, verb("create"), func(o *history.Operation) { o.Body, o.Reason, o.Message = history.BodyStatus, "InternalError", "boom" }),
			want{outcome: OutcomeFail, checked: 1, violations: 1, sentence: `answered 500 ("boom")`}},
		{"429 is no failure", tell(name).ask(20, "b", widgets, 429),
			want{outcome: OutcomePass, checked: 1}},
		{"failed for a reason not recorded", tell(name).ask(20, "b", widgets, 0, failed(history.FailureOther)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"cancelled", tell(name).ask(20, "b", widgets, 0, failed(history.FailureCanceled)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"what the asked server serves is not known", blank(name).start("a", 0, newDoc).startUnknown("b", 0).start("c", 0, oldDoc).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"nobody is known to serve it", blank(name).startUnknown("a", 0).start("b", 0, oldDoc).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
	})
}

func TestNoCrash(t *testing.T) {
	const name = "NoCrash"
	checkStories(t, name, []storyCase{
		{"stopped, killed and paused as asked", tell(name).stop("a", 10).start("a", 12, newDoc).kill("b", 20).pause("c", 20, 30),
			want{outcome: OutcomePass, checked: 4, fact: "apiserver processes: 4"}},
		{"crashed", tell(name).state("a", 10, history.StateCrashed),
			want{outcome: OutcomeFail, checked: 3, violations: 1, cause: "crashed", sentence: "a (v1, start 1) ended by itself at 10s"}},
		{"no life cycle", blank(name),
			want{outcome: OutcomeInconclusive, reason: "has no record of any apiserver's process"}},
		{"under too little load", tell(name).need(history.Pressure{Operations: 10}).ask(20, "b", widgets, 200),
			want{outcome: OutcomeInconclusive, checked: 3, reason: "1 of at least 10 answered operations"}},
		{"under load that got no answer", tell(name).need(history.Pressure{Operations: 2}).ask(20, "b", widgets, 200).ask(21, "b", widgets, 0, failed(history.FailureRefused)),
			want{outcome: OutcomeInconclusive, checked: 3, reason: "1 of at least 2 answered operations"}},
		{"of servers that are not the run's own", external(tell(name)),
			want{outcome: OutcomeInconclusive, checked: 3, reason: "does not see their processes"}},
		{"of servers that are not the run's own, although a crash is recorded", external(tell(name).state("a", 10, history.StateCrashed)),
			want{outcome: OutcomeFail, checked: 3, violations: 1}},
	})
}

// external makes the servers ones that skewproof did not start.
func external(s *story) *story {
	s.h.Run.External = true
	return s
}
