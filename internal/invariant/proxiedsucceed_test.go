package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// askMany sends n requests, ten a second. Every nth of them gets the other status.
func (s *story) askMany(from float64, n int, server string, g history.GVR, status, nth, other int, options ...func(*history.Operation)) *story {
	for i := range n {
		is := status
		if nth > 0 && i%nth == nth-1 {
			is = other
		}
		s.ask(from+float64(i)/10, server, g, is, options...)
	}
	return s
}

func TestProxiedSucceed(t *testing.T) {
	const name = "ProxiedSucceed"
	const little = "too little: 0 of at least 150 requests in steady state for what only other apiservers serve"
	refused := func(s *story) *story { return s.askMany(20, 200, "b", gadgets, 200, 2, 503) }
	overloaded := func(s *story) *story {
		s.h.SlowProbes = append(s.h.SlowProbes, history.SlowProbe{Server: "b", Start: sec(20), End: sec(24), Queued: sec(4)})
		return s
	}
	checkStories(t, name, []storyCase{
		{"all succeed", tell(name).askMany(20, 150, "b", gadgets, 200, 0, 0), want{outcome: OutcomePass, checked: 150, fact: "in steady state that failed: 0 of 150 (0.00 %)"}},
		{"one in two hundred fails", tell(name).askMany(20, 200, "b", gadgets, 200, 200, 503), want{outcome: OutcomePass, checked: 200, fact: "1 of 200 (0.50 %)"}},
		{"one in a hundred fails", tell(name).askMany(20, 200, "b", gadgets, 200, 100, 503),
			want{outcome: OutcomeFail, checked: 200, violations: 2, cause: "503 though a could be reached", sentence: "one of 2 of 200 (1.00 %) that failed"}},
		{"every other one fails", refused(tell(name)), want{outcome: OutcomeFail, checked: 200, violations: 100, fact: "100 of 200 (50.00 %)"}},
		{"one server fails always, another never", tell(name).askMany(20, 200, "b", gadgets, 502, 0, 0).askMany(20, 400, "c", gadgets, 200, 0, 0),
			want{outcome: OutcomeFail, checked: 600, violations: 200, cause: "502", fact: "200 of 600 (33.33 %)"}},
		{"no answers at all", tell(name).askMany(20, 160, "b", gadgets, 0, 0, 0, failed(history.FailureReset)),
			want{outcome: OutcomeFail, checked: 160, violations: 160, cause: "connection broken"}},
		{"too few to say anything", tell(name).askMany(20, 149, "b", gadgets, 503, 0, 0), want{outcome: OutcomeInconclusive, checked: 149, reason: "too little: 149 of at least 150"}},
		{"of what the server serves itself", tell(name).askMany(20, 200, "b", widgets, 503, 0, 0), want{outcome: OutcomeInconclusive, reason: little}},
		{"of what nobody serves", tell(name).askMany(20, 200, "b", ghosts, 503, 0, 0), want{outcome: OutcomeInconclusive, reason: little}},
		{"documents of a version are no resources", tell(name).askMany(20, 200, "b", versionOf(gadgets).GVR, 503, 0, 0), want{outcome: OutcomeInconclusive, reason: little}},
		{"a denied request was not passed on, and does not count", tell(name).askMany(20, 200, "b", gadgets, 404, 0, 0), want{outcome: OutcomeInconclusive, reason: little}},
		{"404 for a missing object counts", tell(name).askMany(20, 200, "b", gadgets, 404, 0, 0, missingObject), want{outcome: OutcomePass, checked: 200}},
		{"a refused request does not count", tell(name).askMany(20, 200, "b", gadgets, 403, 2, 429), want{outcome: OutcomeInconclusive, reason: little}},
		{"5xx of a kubelet or pod does not count", tell(name).served("a", 2, doc("logs", line(pods, "log"), line(gadgets))).askMany(20, 200, "b", pods, 503, 0, 0, sub("log")),
			want{outcome: OutcomeInconclusive, reason: little}},
		{"while another link is cut", refused(tell(name).cut("c", "a", 15, 60)), want{outcome: OutcomeInconclusive, reason: little}},
		{"while the link is slow", refused(tell(name).fault("latency", "b", "a", 15, 60, false)), want{outcome: OutcomeInconclusive, reason: little}},
		{"soon after a server has started", refused(blank(name).start("b", 0, oldDoc).start("c", 0, oldDoc).start("a", 35, newDoc)), want{outcome: OutcomeInconclusive, reason: little}},
		{"during a step that disturbs", refused(tell(name).step("define", 19, 41)), want{outcome: OutcomeInconclusive, reason: little}},
		{"long after a disturbance", refused(tell(name).cut("c", "a", 2, 5)), want{outcome: OutcomeFail, checked: 200, violations: 100}},
		{"when a server was killed and is not back", refused(tell(name).kill("c", 5)), want{outcome: OutcomeInconclusive, reason: little}},
		{"when a server has stopped gracefully", refused(tell(name).stop("c", 5)), want{outcome: OutcomeFail, checked: 200, violations: 100}},
		{"it is unknown what the other server serves", refused(blank(name).startUnknown("a", 0).start("b", 0, oldDoc)), want{outcome: OutcomeInconclusive, reason: little}},
		{"how they failed is not known", tell(name).askMany(20, 150, "b", gadgets, 200, 0, 0).askMany(40, 200, "b", gadgets, 0, 0, 0, failed(history.FailureOther)),
			want{outcome: OutcomeInconclusive, checked: 150, unjudgeable: 200, reason: "more than half"}},
		{"when the machine was overloaded", overloaded(refused(tell(name))), want{outcome: OutcomeInconclusive, unjudgeable: 100, reason: "too little: 0 of at least 150"}},
	})
}
