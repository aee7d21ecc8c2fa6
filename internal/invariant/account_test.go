package invariant

import (
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// accountants are invariants that leave something unruled: none of them rules on a 401.
var accountants = []Invariant{noFalseNotFound, unavailableOnPeerFailure, authorizedAlike, available}

func account(s *story) map[string]Verdict {
	out := map[string]Verdict{}
	verdicts, _ := judgeBy(accountants, NewFacts(s.h))
	for _, v := range verdicts {
		out[v.Name] = v
	}
	return out
}

func TestWhatNoInvariantRulesOnProvesNothing(t *testing.T) {
	const name = "NoFalseNotFound"
	served := func() *story { return tell(name).askEvery(20, 119, "b", gadgets, 200) }
	many := func() *story { // 399 requests
		s := tell(name)
		for i := range 399 {
			s.ask(20+float64(i)/4, "b", gadgets, 200)
		}
		return s
	}
	rejected := func(s *story, n float64, options ...func(*history.Operation)) *story {
		return s.askEvery(120, 119+n, "b", gadgets, 401, options...)
	}
	for _, c := range []struct {
		name    string
		story   *story
		of      string // the invariant
		outcome Outcome
		reason  string
		unruled int // Verdict.Unruled
		taken   int // Verdict.Taken
	}{
		{"all are ruled on", served(), name, OutcomePass, "", 0, 0},
		{"a systematic share is not", rejected(served(), 20), name, OutcomeInconclusive,
			"no invariant rules on 20 of 120 (16.67 %) of the requests that had to be passed on (whole resource); most of them: 20 (401), rejected before routing", 20, 20},
		{"too few to be systematic", rejected(served(), 19), name, OutcomePass, "", 0, 19},
		{"too small a share to be systematic", rejected(many(), 20), name, OutcomePass, "", 0, 20},
		{"just large enough", rejected(many(), 21), name, OutcomeInconclusive, "21 of 420 (5.00 %)", 21, 21},
		{"a violation is shown all the same", rejected(served(), 20).ask(150, "b", gadgets, 404), name, OutcomeFail, "", 20, 20},
		{"another class does not hide it", rejected(served(), 20, verb("watch")), name, OutcomeInconclusive, "20 of 20 (100.00 %) of the requests that had to be passed on (watch)", 20, 20},
		{"two classes, each too few", rejected(rejected(served(), 10), 10, verb("watch")), name, OutcomePass, "", 0, 20},
		{"statuses of one class count together", rejected(served(), 10).askEvery(140, 149, "b", gadgets, 429), name, OutcomeInconclusive, "most of them: 10 (401)", 20, 20},
		{"the scenario is about something else", rejected(tell("NoCrash").askEvery(20, 119, "b", gadgets, 200), 20), name, OutcomeInconclusive, "no invariant rules on", 20, 20},
		{"a refusal by the authorizer is ruled on", served().askEvery(120, 139, "b", gadgets, 403, by("reader"), forbidden), name, OutcomePass, "", 0, 20},
		{"a refusal by an admission plugin is not", served().askEvery(120, 139, "b", gadgets, 403, by("reader")), name, OutcomeInconclusive, "most of them: 20 (403), rejected", 20, 20},
		{"a conflict shows a server of the resource", served().askEvery(120, 139, "b", gadgets, 409), name, OutcomePass, "", 0, 0},
		{"405 does not", served().askEvery(120, 139, "b", gadgets, 405), name, OutcomeInconclusive, "20 (405), no invariant rules on such an answer", 20, 20},
		{"nothing crosses", tell(name).askEvery(20, 119, "a", gadgets, 401).ask(15, "b", gadgets, 200), name, OutcomePass, "", 0, 0},
		{"only once the asked server knows, but ruled on", tell(name).askEvery(2, 40, "b", gadgets, 404, took(0.001)).askEvery(12, 90, "b", gadgets, 200), name, OutcomeFail, "", 0, 0},

		{"an answer contradicts the ground truth, and is not believed",
			tell("UnavailableOnPeerFailure").cut("b", "a", 50, 90).askEvery(55, 64, "b", gadgets, 503).askEvery(65, 84, "b", gadgets, 200),
			"UnavailableOnPeerFailure", OutcomeInconclusive, "20 (200), the ground truth contradicts itself", 20, 20},
		{"few do", tell("UnavailableOnPeerFailure").cut("b", "a", 50, 90).askEvery(53, 64, "b", gadgets, 503).askEvery(65, 74, "b", gadgets, 200),
			"UnavailableOnPeerFailure", OutcomePass, "", 0, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := account(c.story)[c.of]
			if v.Outcome != c.outcome || !strings.Contains(v.Reason, c.reason) || v.Unruled != c.unruled || v.Taken() != c.taken {
				t.Errorf("%s (%s), unruled %d, taken out %d; want %s (%s), %d, %d: %+v", v.Outcome, v.Reason, v.Unruled, v.Taken(), c.outcome, c.reason, c.unruled, c.taken, v.TakenOut)
			}
		})
	}
}

// A run in which a core invariant has such a doubt does not pass, even if the scenario tests
// another invariant.
func TestUnruledAnswersMakeTheRunInconclusive(t *testing.T) {
	passed := Verdict{Grade: GradeCore, Outcome: OutcomePass, About: true}
	doubted := Verdict{Grade: GradeCore, Outcome: OutcomeInconclusive, Unruled: 20}
	if got := Overall([]Verdict{passed, doubted}, false, nil).Outcome(); got != OutcomeInconclusive {
		t.Errorf("overall %s", got)
	}
	doubted.Grade = GradeExtended
	if got := Overall([]Verdict{passed, doubted}, false, nil).Outcome(); got != OutcomePass {
		t.Errorf("overall %s with an extended invariant in doubt", got)
	}
}

// The test tries each excuse, and a similar case that is not excused.
func TestExcusesOfTheUnruledAreNarrow(t *testing.T) {
	haunted := doc("haunted", line(pods), line(widgets), line(ghosts))
	gone := func() *story { // b served the gadgets until 50; a still serves them
		return blank().start("a", 0, newDoc).start("b", 0, newDoc).start("c", 0, oldDoc).served("b", 50, oldDoc)
	}
	restarted := func() *story { return tell().stop("b", 80).startUnknown("b", 90).served("b", 95, oldDoc) }
	third := func() *story { return tell().stop("c", 80).startUnknown("c", 90).served("c", 95, oldDoc) }
	two := func() *story { // c serves them as well, and b's link to c is faulty
		return blank().start("a", 0, newDoc).start("b", 0, oldDoc).start("c", 0, newDoc).fault("reset", "b", "c", 30, 60, false)
	}
	const unruled, ruled = 1, 0
	for _, c := range []struct {
		name    string
		story   *story
		reason  string // the reason for the one request; "" if it is not taken out
		unruled int
	}{
		{"canceled", tell().ask(40, "b", gadgets, 0, failed(history.FailureCanceled)), "canceled by the load", ruled},
		{"no answer for another reason", tell().ask(40, "b", gadgets, 0, failed(history.FailureOther)), "no invariant rules on such an answer", unruled},

		{"the server is starting", restarted().ask(90.5, "b", gadgets, 401), "the asked server was not ready", ruled},
		{"it is ready, and its document is not known yet", restarted().ask(93, "b", gadgets, 401), "unknown what a server served", unruled},
		{"its state is unknown", tell().ask(40, "z", gadgets, 401), "the state of the asked server is unknown", unruled},

		{"the proxy is off", tell().off("b", 30, 60).ask(40, "b", gadgets, 404), "the proxy of the asked server was switched off", ruled},
		{"and on again", tell().off("b", 30, 60).ask(70, "b", gadgets, 401), "rejected before routing", unruled},
		{"the proxy of another server is off", tell().off("c", 30, 60).ask(40, "b", gadgets, 401), "rejected before routing", unruled},

		{"another server is starting, which may serve it", third().ask(90.5, "b", ghosts, 404), "a server that may serve it was starting, stopping or changing", ruled},
		{"another server is ready, and its document is not known yet", third().ask(93, "b", ghosts, 404), "unknown what a server served", unruled},
		{"another server begins to serve it", tell().changed("c", 30, 50, haunted).ask(40, "b", ghosts, 404), "a server that may serve it was starting, stopping or changing", ruled},
		{"it served it before", tell().changed("c", 30, 35, haunted).ask(40, "b", ghosts, 401), "rejected before routing", unruled},

		{"the link of the client is faulty", tell().fault("reset", "client", "b", 30, 60, false).ask(40, "b", gadgets, 0, failed(history.FailureReset)), "a fault on the link of the client", ruled},
		{"the link of another client is faulty", tell().fault("reset", "client", "c", 30, 60, false).ask(40, "b", gadgets, 401), "rejected before routing", unruled},

		{"no etcd", tell().cut("b", "etcd", 30, 60).ask(40, "b", gadgets, 401), "the asked server was cut off from etcd", ruled},
		{"another server without etcd", tell().cut("c", "etcd", 30, 60).ask(40, "b", gadgets, 401), "rejected before routing", unruled},

		{"it may know of a deletion", gone().ask(70, "b", gadgets, 404), "the asked server had served it: it may know of a deletion first", ruled},
		{"the other server began later", gone().served("a", 55, oldDoc).served("a", 60, newDoc).ask(80, "b", gadgets, 401), "rejected before routing", unruled},

		{"a fault in the way", tell().fault("reset", "b", "a", 30, 60, false).ask(40, "b", gadgets, 503), "a fault of the run was in the way to every server that serves it", ruled},
		{"which does not explain a rejection", tell().fault("reset", "b", "a", 30, 60, false).ask(40, "b", gadgets, 401), "rejected before routing", unruled},
		{"and does not explain an answer that is not a failure", tell().fault("reset", "b", "a", 30, 60, false).ask(40, "b", gadgets, 405), "no invariant rules on such an answer", unruled},
		{"a fault in the way to one of two", two().ask(40, "b", gadgets, 0, failed(history.FailureOther)), "no invariant rules on such an answer", unruled},
		{"a write that was sent into it", two().ask(40, "b", gadgets, 503, verb("create")).hop("b", 0, 10, false).hop("c", 2, 8, true), "it could be sent only once, and a fault of the run was in the way to a server that serves it", ruled},
		{"a write that was not", two().ask(40, "b", gadgets, 503, verb("create")).hop("b", 0, 10, false).hop("a", 2, 8, true), "", ruled},

		{"a truncated 404", tell().ask(40, "b", gadgets, 404, unsaid, failed(history.FailureReset)), "a truncated 404 may deny the resource or an object", unruled},
		{"a whole one", tell().ask(40, "b", gadgets, 404), "", ruled},
		{"a tolerated one", tell().ask(5, "b", gadgets, 404), "", ruled},
	} {
		t.Run(c.name, func(t *testing.T) {
			taken := account(c.story)["NoFalseNotFound"].TakenOut
			if c.reason == "" {
				if len(taken) > 0 {
					t.Errorf("taken out: %+v", taken)
				}
				return
			}
			if len(taken) != 1 || taken[0].Reason != c.reason || taken[0].Unruled != c.unruled || taken[0].Count != 1 || taken[0].Of != 1 {
				t.Errorf("taken out: %+v, want 1 of 1, %q, unruled %d", taken, c.reason, c.unruled)
			}
		})
	}
}

func TestTakenOutByClassAnswerAndReason(t *testing.T) {
	socket := func(o *history.Operation) { o.Client, o.Verb = history.ClientSocket, "watch" }
	forged := func(o *history.Operation) { o.Rerouted = true }
	s := tell().ask(40, "b", gadgets, 401).ask(41, "b", gadgets, 401, verb("create")).ask(42, "b", gadgets, 401, verb(history.VerbTable)).
		ask(43, "b", gadgets, 401, verb("watch")).ask(44, "b", gadgets, 401, socket).ask(45, "b", pods, 401, sub("resize")).
		ask(46, "b", gadgets, 401, forged).ask(47, "b", gadgets, 200, forged).ask(48, "b", gadgets, 429).ask(49, "b", gadgets, 401)
	want := []TakenOut{
		{"whole resource", "401", "rejected before routing", 2, 3, 2},
		{"forged hop", "401", "rejected before routing", 1, 2, 1},
		{"subresource", "401", "rejected before routing", 1, 1, 1},
		{"table", "401", "rejected before routing", 1, 1, 1},
		{"upgrade", "401", "rejected before routing", 1, 1, 1},
		{"watch", "401", "rejected before routing", 1, 1, 1},
		{"whole resource", "429", "rejected before routing", 1, 3, 1},
		{"write", "401", "rejected before routing", 1, 1, 1},
	}
	if got := account(s)["NoFalseNotFound"].TakenOut; !slices.Equal(got, want) {
		t.Errorf("taken out:\n%+v\nwant\n%+v", got, want)
	}
}

// The list of what was taken out begins with what no invariant ruled on. After that it is sorted by
// frequency, then by words.
func TestTakenOutIsInOrder(t *testing.T) {
	s := tell().askEvery(40, 44, "b", gadgets, 401).askEvery(50, 59, "b", gadgets, 402).askEvery(62, 64, "b", gadgets, 402, verb("create"))
	s.askEvery(70, 99, "b", gadgets, 0, failed(history.FailureCanceled)).askEvery(100, 106, "b", gadgets, 0, verb("create"), failed(history.FailureCanceled))
	for name, v := range account(s) {
		sorted := slices.IsSortedFunc(v.TakenOut, func(a, b TakenOut) int {
			switch {
			case a.Unruled != b.Unruled:
				return b.Unruled - a.Unruled
			case a.Count != b.Count:
				return b.Count - a.Count
			}
			return strings.Compare(a.Class+"\x00"+a.Answer+"\x00"+a.Reason, b.Class+"\x00"+b.Answer+"\x00"+b.Reason)
		})
		if !sorted {
			t.Errorf("%s: %+v", name, v.TakenOut)
		}
	}
	if v := account(s)["NoFalseNotFound"]; len(v.TakenOut) < 3 {
		t.Errorf("too few kinds to test the order: %+v", v.TakenOut)
	}
}

// A status of 500 or more means that the server could not answer. A lower status is an answer.
func TestStatusesBesideServerErrors(t *testing.T) {
	for _, c := range []struct {
		status       int
		cut, impeded string // why the request is taken out while b cannot reach a, and while their link fails at times; "": not taken out
	}{
		{404, "", ""},
		{499, "the ground truth contradicts itself", "no invariant rules on such an answer"},
		{500, "", "a fault of the run was in the way to every server that serves it"},
		{501, "", "a fault of the run was in the way to every server that serves it"},
		{503, "", "a fault of the run was in the way to every server that serves it"},
	} {
		for want, s := range map[*string]*story{
			&c.cut: tell().cut("b", "a", 30, 90).ask(50, "b", gadgets, c.status), &c.impeded: tell().fault("reset", "b", "a", 30, 90, false).ask(50, "b", gadgets, c.status),
		} {
			got := ""
			for _, one := range account(s)["NoFalseNotFound"].TakenOut {
				got += one.Reason
			}
			if (got == "") != (*want == "") || !strings.HasPrefix(got, *want) {
				t.Errorf("%d, cut off %t: taken out because %q, want %q", c.status, want == &c.cut, got, *want)
			}
		}
	}
}
