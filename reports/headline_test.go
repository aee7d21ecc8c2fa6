package reports

import (
	"testing"

	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/internal/invariant"
)

func TestHeadline(t *testing.T) {
	core, extended := invariant.GradeCore, invariant.GradeExtended
	wrong := func(first, last float64, change func(*invariant.Evidence)) []invariant.Verdict {
		e := invariant.Evidence{
			Sentence: "it went wrong", Count: 213, First: at(first), Last: at(last), Asked: "b", Resources: []string{"g/v1/x"}, ResourcesTotal: 1,
			Operations: []history.Operation{{Sent: &history.Sent{Server: "b"}, Received: &history.Received{Status: 404}}},
			Candidates: []invariant.Candidate{{Server: "a"}},
		}
		if change != nil {
			change(&e)
		}
		small := e
		small.Count = 1
		return []invariant.Verdict{{Name: "X", Grade: core, Outcome: invariant.OutcomeFail, Violations: e.Count,
			Evidence: []invariant.Evidence{small, e}, Kinds: 2}}
	}
	for _, c := range []struct {
		name     string
		verdicts []invariant.Verdict
		strict   bool
		change   func(*history.History)
		want     string
	}{
		{
			name: "while a fault was on and another server was restarted", verdicts: wrong(12, 13, nil),
			want: "while b→a was cut and c was restarted, b answered 404 to 213 requests for g/v1/x, which a was serving.",
		},
		{
			name: "before the restart", verdicts: wrong(6, 7, nil),
			want: "while b→a was cut, b answered 404 to 213 requests for g/v1/x, which a was serving.",
		},
		{
			name: "before everything", verdicts: wrong(3, 4, nil),
			want: "with nothing disturbing the cluster, b answered 404 to 213 requests for g/v1/x, which a was serving.",
		},
		{
			name: "after the last step", verdicts: wrong(18, 19, nil),
			change: func(h *history.History) { h.Steps[2].Disturbs = true },
			want:   "after “pause a for 1s”, b answered 404 to 213 requests for g/v1/x, which a was serving.",
		},
		{
			name: "during steps without faults", verdicts: wrong(5, 9, nil),
			change: func(h *history.History) { h.Faults = nil },
			want:   "during “cut b→a” and “restart c”, b answered 404 to 213 requests for g/v1/x, which a was serving.",
		},
		{
			name: "a replacement", verdicts: wrong(12, 13, nil),
			change: func(h *history.History) {
				for n, l := range h.Lifecycle {
					if l.Server == "c" && l.Incarnation == 2 {
						h.Lifecycle[n].Version = newer
					}
				}
			},
			want: "while b→a was cut and c was replaced by v1.37.1, b answered 404 to 213 requests for g/v1/x, which a was serving.",
		},
		{
			name: "many resources, several candidates, no answer",
			verdicts: wrong(6, 7, func(e *invariant.Evidence) {
				e.Resources, e.ResourcesTotal = []string{"g/v1/x", "g/v1/y"}, 31
				e.Operations = []history.Operation{{Sent: &history.Sent{Server: "b"}, Received: &history.Received{Failure: history.FailureTimeout}}}
				e.Candidates = []invariant.Candidate{{Server: "a"}, {Server: "b"}}
			}),
			want: "while b→a was cut, b gave no complete response to 213 requests for 31 resources (g/v1/x among them), which a and b itself were serving.",
		},
		{
			name: "evidence of another shape", verdicts: wrong(6, 7, func(e *invariant.Evidence) { e.Candidates = nil }),
			want: "X was violated 213 times, for example: it went wrong.",
		},
		{
			name:     "no evidence",
			verdicts: []invariant.Verdict{{Name: "X", Grade: core, Outcome: invariant.OutcomeFail, Violations: 1}},
			want:     "X was violated once.",
		},
		{
			name: "what the scenario is about goes first, what does not count last",
			verdicts: []invariant.Verdict{
				{Name: "E", Grade: extended, Outcome: invariant.OutcomeFail, Violations: 1, About: true},
				{Name: "X", Grade: core, Outcome: invariant.OutcomeFail, Violations: 1},
				{Name: "Y", Grade: core, Outcome: invariant.OutcomeFail, Violations: 2, About: true},
			},
			want: "Y was violated 2 times.",
		},
		{
			name: "pass",
			verdicts: []invariant.Verdict{
				{Name: "X", Grade: core, Outcome: invariant.OutcomePass, Checked: 1},
				{Name: "Y", Grade: core, Outcome: invariant.OutcomeInconclusive, Reason: "not exercised"},
				{Name: "E", Grade: extended, Outcome: invariant.OutcomeFail, Violations: 1},
			},
			want: "1 of 3 invariants held over 14 requests to 3 servers; beyond the KEP, E did not; 1 had nothing to judge or too little.",
		},
		{
			name:     "strict",
			verdicts: []invariant.Verdict{{Name: "E", Grade: extended, Outcome: invariant.OutcomeFail, Violations: 1}},
			strict:   true,
			want:     "E was violated once.",
		},
		{
			name: "inconclusive",
			verdicts: []invariant.Verdict{{Name: "X", Grade: core, Outcome: invariant.OutcomeInconclusive, About: true,
				Reason: "fault 1 had no effect"}},
			want: "the run proves nothing about X: fault 1 had no effect.",
		},
		{
			name: "an overloaded machine, for an invariant that the scenario does not test",
			verdicts: []invariant.Verdict{
				{Name: "X", Grade: core, Outcome: invariant.OutcomePass, Checked: 1, About: true},
				{Name: "Y", Grade: core, Outcome: invariant.OutcomeInconclusive, Overloaded: 3, Reason: "the machine did not keep up"},
			},
			want: "the run proves nothing about Y: the machine did not keep up.",
		},
		{
			name: "ended early, whatever else an invariant lacks",
			verdicts: []invariant.Verdict{{Name: "X", Grade: core, Outcome: invariant.OutcomeInconclusive, About: true,
				Reason: "too little pressure; the run ended early: etcd exited 1"}},
			change: func(h *history.History) { h.End.Error = "etcd exited 1; last lines of its log:\n  first\n  second\n" },
			want:   "the run ended early: etcd exited 1; its last words: second.",
		},
		{
			name: "not judged",
			verdicts: []invariant.Verdict{{Name: "X", Grade: core, Outcome: invariant.OutcomeInconclusive, About: true,
				Reason: "not judged: no load was sent"}},
			change: func(h *history.History) { h.Run.Unjudged = "no load was sent" },
			want:   "not judged: no load was sent.",
		},
		{
			name: "wrong answers left out of a pass",
			verdicts: []invariant.Verdict{
				{Name: "X", Grade: core, Outcome: invariant.OutcomePass, Checked: 1},
				{Name: "E", Grade: extended, Outcome: invariant.OutcomeInconclusive, Overloaded: 3, Reason: "the machine was overloaded"},
			},
			want: "1 of 2 invariants held over 14 requests to 3 servers; 1 had nothing to judge or too little. " +
				"Left out, because the machine was overloaded: 3 wrong answers (E).",
		},
		{
			name: "wrong answers left out of a fail",
			verdicts: []invariant.Verdict{
				{Name: "X", Grade: core, Outcome: invariant.OutcomeFail, Violations: 1, Overloaded: 1},
				{Name: "Y", Grade: core, Outcome: invariant.OutcomeInconclusive, Overloaded: 2},
			},
			want: "X was violated once. Left out, because the machine was overloaded: 1 wrong answer (X) and 2 wrong answers (Y).",
		},
		{
			name: "wrong answers left out by many invariants",
			verdicts: []invariant.Verdict{
				{Name: "X", Grade: core, Outcome: invariant.OutcomeFail, Violations: 1, Overloaded: 1},
				{Name: "Y", Grade: core, Overloaded: 2}, {Name: "Z", Grade: core, Overloaded: 7}, {Name: "W", Grade: core, Overloaded: 1},
			},
			want: "X was violated once. Left out, because the machine was overloaded: up to 7 wrong answers by each of 4 invariants.",
		},
		{name: "no verdict", want: "nothing was proved either way."},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := smallRun()
			if c.change != nil {
				c.change(h)
			}
			if got := reportOf(h, c.verdicts, Options{Strict: c.strict}).Verdict.Sentence; got != c.want {
				t.Errorf("headline:\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 18234: "18,234", 1234567: "1,234,567", -999: "-999", -1000: "-1,000"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) is %q, want %q", n, got, want)
		}
	}
}
