package invariant

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

func TestUnavailableOnPeerFailure(t *testing.T) {
	const name = "UnavailableOnPeerFailure"
	cutOff := func() *story { return tell(name).cut("b", "a", 15, 100) }
	slowly := func() *story {
		return cutOff().stop("c", 20).state("c", 22, history.StateStarting).state("c", 59, history.StateReady).served("c", 60, oldDoc)
	}
	checkStories(t, name, []storyCase{
		{"503 while the only capable peer is cut off", cutOff().askEvery(20, 24, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 5, fact: "slowest right 503: 10ms"}},
		{"503 while it is paused, slowly", tell(name).pause("a", 15, 100).ask(20, "b", gadgets, 503, took(23)),
			want{outcome: OutcomePass, checked: 1, fact: "slowest right 503: 23s"}},
		{"503 while it cannot be trusted", tell(name).fault(history.FaultMisconfiguration, "b", "a", 15, 100, true).ask(20, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1}},
		{"404 while it cannot be trusted", tell(name).fault(history.FaultMisconfiguration, "b", "a", 15, 100, true).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 rather than 503"}},
		{"503 of a server whose own proxy is off, so that it cannot reach a peer", tell(name).off("b", 15, 100).ask(20, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"404 of such a server, whose link is cut as well", cutOff().off("b", 15, 100).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"404, and another server's proxy is off", cutOff().off("c", 15, 100).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 rather than 503"}},
		{"404 after the proxy was on again", cutOff().off("b", 15, 18).ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 rather than 503"}},
		{"503 too late", cutOff().ask(20, "b", gadgets, 503, took(31)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 too late"}},
		{"exactly at the bound", cutOff().ask(20, "b", gadgets, 503, took(30)),
			want{outcome: OutcomePass, checked: 1}},
		{"a heal after the bound excuses nothing", cutOff().ask(60, "b", gadgets, 200, took(50)).ask(20, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"404 is no answer either", cutOff().ask(20, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 rather than 503"}},
		{"404 that broke off before it said of what", cutOff().ask(20, "b", gadgets, 404, failed(history.FailureReset), unsaid).ask(21, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1, unjudgeable: 1}},
		{"503 during the long start of another server that does not serve it before or after", slowly().ask(40, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1}},
		{"404 during such a start", slowly().ask(40, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"503 during the start of another server that serves it afterwards", cutOff().stop("c", 20).start("c", 22, newDoc).ask(22.5, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"503 during the start of another server that served it before", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).cut("b", "a", 15, 100).
			stop("c", 20).start("c", 22, oldDoc).ask(22.5, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"503 while another server is ready whose document is known only later", cutOff().stop("c", 20).startUnknown("c", 22).served("c", 60, oldDoc).ask(40, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"503 during a start of another server that fails, whatever its next process serves",
			cutOff().stop("c", 20).state("c", 22, history.StateStarting).kill("c", 50).start("c", 60, oldDoc).ask(40, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"502", cutOff().ask(20, "b", gadgets, 502),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "502 rather than 503"}},
		{"404 while knowledge spreads", tell(name).cut("b", "a", 2, 100).ask(5, "b", gadgets, 404).ask(20, "b", gadgets, 503),
			want{outcome: OutcomePass, checked: 1, fact: "tolerated while knowledge spread: 1"}},
		{"the client stopped waiting before the bound", cutOff().ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(10)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the client stopped waiting after the bound", cutOff().ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(40)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "no answer in time"}},
		{"no answer within the bound, and healed after it", tell(name).cut("b", "a", 15, 55).ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(40)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "no answer in time"}},
		{"healed before the bound", tell(name).cut("b", "a", 15, 45).ask(20, "b", gadgets, 503, took(40)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the connection is broken instead", cutOff().ask(20, "b", gadgets, 0, failed(history.FailureReset)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "connection broken"}},
		{"the connection was refused, so the server was not asked", cutOff().ask(20, "b", gadgets, 0, failed(history.FailureRefused)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"cancelled", cutOff().ask(20, "b", gadgets, 0, failed(history.FailureCanceled)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"an answer that is impossible", cutOff().ask(20, "b", gadgets, 200),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, fact: "although every capable server was out of reach: 1"}},
		{"only one of two capable peers is cut off", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).
			cut("b", "a", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"both capable peers are out of reach, each for a reason of its own", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).
			cut("b", "a", 15, 100).pause("c", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "500 rather than 503 though a, c served it, out of reach"}},
		{"the third server may serve it too", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).startUnknown("c", 0).
			cut("b", "a", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"the third server may serve it too, but is cut off as well", blank(name).start("a", 0, newDoc).start("b", 0, oldDoc).startUnknown("c", 0).
			cut("b", "a", 15, 100).cut("b", "c", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the other direction is cut", tell(name).cut("a", "b", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"cut while the request was under way", tell(name).cut("b", "a", 20, 100).ask(19.9, "b", gadgets, 500, took(1)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"two cuts leave no gap", tell(name).cut("b", "a", 15, 21).cut("b", "a", 20.5, 30).ask(20, "b", gadgets, 500, took(3)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"two cuts leave a gap", tell(name).cut("b", "a", 15, 21).cut("b", "a", 21.5, 30).ask(20, "b", gadgets, 500, took(3)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"slow, but not cut", tell(name).fault("latency", "b", "a", 15, 100, false).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"every link to the peer is cut", tell(name).cut("", "a", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"the client's own link is slow", cutOff().fault("latency", "client", "b", 15, 100, false).ask(20, "b", gadgets, 503, took(31)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"404 for what the asked server no longer serves, and a server that is cut off still serves",
			blank(name).start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, oldDoc).served("b", 10, oldDoc).cut("b", "a", 15, 100).ask(30, "b", gadgets, 404),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "ground truth is unknown"}},
		{"404 for what it served in an earlier life",
			blank(name).start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, oldDoc).stop("b", 5).start("b", 8, oldDoc).cut("b", "a", 15, 100).ask(30, "b", gadgets, 404),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 rather than 503"}},
		{"the asked server has lost etcd", cutOff().cut("b", "etcd", 15, 100).ask(20, "b", gadgets, 500),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"only a killed server served it", tell(name).kill("a", 15).ask(20, "b", gadgets, 503).ask(40, "b", gadgets, 404),
			want{outcome: OutcomePass, checked: 2}},
		{"no answer while waiting for a killed server", tell(name).kill("a", 15).ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(35)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "no answer in time after a was lost"}},
		{"a late 404 after waiting for a crashed server", tell(name).state("a", 15, history.StateCrashed).ask(20, "b", gadgets, 404, took(35)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "404 too late after a was lost"}},
		{"the client did not wait as long", tell(name).kill("a", 15).ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(10)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"the killed server was back within the bound", tell(name).kill("a", 15).start("a", 40, newDoc).ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(35)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"killed, and the client's link is slow", tell(name).kill("a", 15).fault("latency", "client", "b", 10, 100, false).ask(20, "b", gadgets, 503, took(35)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"killed, and the asked server has lost etcd", tell(name).kill("a", 15).cut("b", "etcd", 10, 100).ask(20, "b", gadgets, 0, failed(history.FailureTimeout), took(35)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"too few were out of reach", cutOff().need(history.Pressure{Unreachable: 3}).askEvery(20, 21, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, checked: 2, reason: "2 of at least 3 operations whose every capable server"}},
	})
}

// An answer that only a capable server can give is counted. An answer that broke off is not
// counted.
func TestABrokenAnswerContradictsNothing(t *testing.T) {
	s := tell("UnavailableOnPeerFailure").cut("b", "a", 15, 100).ask(20, "b", gadgets, 404, failed(history.FailureReset), unsaid)
	for _, f := range verdictOf(t, s.h, "UnavailableOnPeerFailure").Facts {
		if strings.Contains(f.Name, "answered although") {
			t.Errorf("%s: %s", f.Name, f.Value)
		}
	}
}
