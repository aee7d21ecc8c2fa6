package reports

import (
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/invariant"
)

func summarize(t *testing.T, r RunReport, opts SummaryOptions) string {
	t.Helper()
	var b strings.Builder
	if err := WriteSummary(&b, r, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSummaryColorsOnlyWhenAsked(t *testing.T) {
	if s := summarize(t, small(), SummaryOptions{}); strings.Contains(s, "\x1b") {
		t.Errorf("colours although none were requested:\n%q", s)
	}
	if s := summarize(t, small(), SummaryOptions{Color: true}); !strings.HasPrefix(s, "\x1b[31mFAIL:\x1b[0m Discovery") {
		t.Errorf("no colours although asked for:\n%q", s)
	}
}

func TestSummaryNamesFiles(t *testing.T) {
	if s := summarize(t, small(), SummaryOptions{}); strings.Contains(s, HTMLFile) {
		t.Errorf("a report that was not written is named:\n%s", s)
	}
	if s := summarize(t, small(), SummaryOptions{Dir: "out"}); !strings.HasSuffix(s, "out/report.html\nout/report.json\nout/junit.xml\n") {
		t.Errorf("the files are not named:\n%s", s)
	}
}

// A run that was not judged says so only once, and not for each invariant.
func TestSummaryOfARunThatWasNotJudged(t *testing.T) {
	r := small()
	r.Metadata.Unjudged = "no load was sent"
	s := summarize(t, r, SummaryOptions{Dir: "out"})
	if strings.Contains(s, r.Invariants[0].Name) || !strings.HasSuffix(s, "out/report.html\nout/report.json\nout/junit.xml\n") {
		t.Errorf("it says:\n%s", s)
	}
}

// The verdict of a run that failed does not say that the run ended early, so another line does.
func TestSummaryOfAFailedRunThatEndedEarly(t *testing.T) {
	r := small()
	const line = "\n\nThe run ended early: step 2, sweep: the run was stopped.\n\n"
	if s := summarize(t, r, SummaryOptions{}); strings.Contains(s, "ended early") {
		t.Errorf("of a whole run it says:\n%s", s)
	}
	r.Metadata.Error = "step 2, sweep: the run was stopped\nand more"
	if s := summarize(t, r, SummaryOptions{}); !strings.Contains(s, line) {
		t.Errorf("it says:\n%s", s)
	}
	r.Verdict.Outcome = invariant.OutcomeInconclusive
	for n, reason := range []string{"", "too little; "} {
		r.Invariants[n].Outcome, r.Invariants[n].Reason = invariant.OutcomeInconclusive, reason+"the run ended early: "+r.Metadata.Error
	}
	s := summarize(t, r, SummaryOptions{})
	if strings.Contains(s, "the run was stopped") || !strings.Contains(s, "  the run ended early\n") || !strings.Contains(s, "  too little\n") {
		t.Errorf("it says it twice:\n%s", s)
	}
}
