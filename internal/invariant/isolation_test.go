package invariant

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
)

// crowd adds a crowd at b.
func (s *story) crowd(from, to float64, watches, failed int) *story {
	s.h.Crowds = append(s.h.Crowds, history.Crowd{
		Server: "b", Start: sec(from), End: sec(to), Watches: watches, Failed: failed, Problem: "connection refused",
	})
	return s
}

func TestIsolation(t *testing.T) {
	const name = "Isolation"
	// a is asked directly 21 times from 60s to 80s, and answers within 10ms, but for the last answer.
	crowded := func() *story {
		return tell(name).crowd(60, 90, 4, 0).askEvery(60, 79.5, "a", gadgets, 200, took(0.01)).ask(80, "a", gadgets, 200, took(1))
	}
	checkStories(t, name, []storyCase{
		{"nobody waits", crowded().ask(70, "b", gadgets, 200, took(0.1)).ask(71, "b", widgets, 200, took(0.1)),
			want{outcome: OutcomePass, checked: 2, fact: "longest wait of another caller: 100ms"}},
		{"as long as is allowed", crowded().ask(70, "b", gadgets, 200, took(4)),
			want{outcome: OutcomePass, checked: 1, fact: "longest wait of a direct request: 1s"}},
		{"longer than that", crowded().ask(70, "b", gadgets, 200, took(4.001)),
			want{outcome: OutcomeFail, checked: 1, violations: 1,
				cause: "waited 4.001s, 3.001s longer than the slowest direct request beside another caller's watches, though a could be reached"}},
		{"for what the server serves itself", crowded().ask(70, "b", widgets, 200, took(5)),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "though the server itself serves it"}},
		{"at another server", crowded().ask(70, "c", gadgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"before the crowd and after it", crowded().ask(59, "b", gadgets, 200, took(5)).ask(90, "b", gadgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a watch", crowded().ask(70, "b", gadgets, 200, took(5), verb("watch")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, checked: 0, reason: "the ground truth is unknown"}},
		{"a failure", crowded().ask(70, "b", gadgets, 503),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "503 beside another caller's watches, though a could be reached"}},
		{"throttled", crowded().ask(70, "b", gadgets, 429),
			want{outcome: OutcomeFail, checked: 1, violations: 1, cause: "throttled (429) beside"}},
		{"throttled, as directly", crowded().ask(75, "a", gadgets, 429).ask(70, "b", gadgets, 429),
			want{outcome: OutcomePass, checked: 1}},
		{"a failure of a cut link", crowded().cut("b", "a", 65, 95).ask(70, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a wait over a slow link", crowded().fault("latency", "b", "a", 65, 95, false).ask(70, "b", gadgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a wait over the slow link of a server that has no part in it", crowded().fault("latency", "b", "c", 65, 95, false).ask(70, "b", gadgets, 200, took(5)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a wait of a server whose etcd is slow", crowded().fault("latency", "b", "etcd", 65, 95, false).ask(70, "b", widgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a wait for a peer whose etcd is slow", crowded().fault("latency", "a", "etcd", 65, 95, false).ask(70, "b", gadgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a wait over the slow link of the client", crowded().fault("latency", "client", "b", 65, 95, false).ask(70, "b", widgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"a wait of a server with a slow link to a peer, for what it serves itself", crowded().fault("latency", "b", "a", 65, 95, false).ask(70, "b", widgets, 200, took(5)),
			want{outcome: OutcomeFail, checked: 1, violations: 1}},
		{"a failure before knowledge had spread", tell(name).crowd(1, 30, 4, 0).askEvery(1, 25, "a", gadgets, 200).ask(3, "b", gadgets, 503),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
		{"another verb, which nobody sent directly", crowded().ask(70, "b", gadgets, 201, took(5), verb("create")),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "the ground truth is unknown"}},
		{"19 direct requests are too few", tell(name).crowd(60, 90, 4, 0).askEvery(60, 78.5, "a", gadgets, 200, took(0.01)).ask(70, "b", gadgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, unjudgeable: 1, reason: "the ground truth is unknown"}},
		{"direct requests to the crowded server do not count", tell(name).crowd(60, 90, 4, 0).askEvery(60, 85.5, "b", widgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, unjudgeable: 26, reason: "the ground truth is unknown"}},
		{"no request of the crowd arrived", tell(name).crowd(60, 90, 4, 4).askEvery(60, 85.5, "a", gadgets, 200).ask(70, "b", gadgets, 200),
			want{outcome: OutcomeInconclusive, reason: "no watch of the crowd reached b: connection refused"}},
		{"no crowd", tell(name).ask(70, "b", gadgets, 200, took(5)),
			want{outcome: OutcomeInconclusive, reason: "not exercised"}},
	})
}

// A server that runs short of something lets all requests wait. A proxy that does lets those wait
// that it passes on. A known defect of the first kind must not explain one of the second kind.
func TestIsolationSaysWhetherOnlyThePassedOnWait(t *testing.T) {
	crowded := func() *story {
		return tell("Isolation").crowd(60, 90, 4, 0).askEvery(60, 82, "a", gadgets, 200, took(0.01)).ask(70, "b", gadgets, 200, took(9))
	}
	const only = "waited beside watches, only if passed on"
	for name, c := range map[string]struct {
		story *story
		want  string
	}{
		"a request that is passed on":              {crowded(), only},
		"another one, which does not wait":         {crowded().ask(71, "b", widgets, 200), only},
		"another one, which fails in its own way":  {crowded().ask(71, "b", widgets, 429), only},
		"another one, which waits too":             {crowded().ask(71, "b", widgets, 200, took(9)), "waited beside watches"},
		"another one, which waits beside no crowd": {crowded().ask(95, "b", widgets, 200, took(9)), only},
	} {
		found := false
		evidence := verdictOf(t, c.story.h, "Isolation").Evidence
		for _, e := range evidence {
			found = found || e.Signature.Wrong == c.want && e.Signature.Roles != RoleItself
		}
		if !found {
			t.Errorf("%s: no violation %q: %+v", name, c.want, evidence)
		}
	}
}
