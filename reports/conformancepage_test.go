package reports

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

func renderConformance(t *testing.T, c ConformanceReport) *html.Node {
	t.Helper()
	return parsed(t, WriteConformanceHTML, c)
}

// If rules beyond the KEP count, summary and page name the scenario that failed because of them,
// and say why.
func TestWhatFailedAStrictSuiteIsNamed(t *testing.T) {
	c := smallConformance()
	c.Metadata.Strict = true
	c.Scenarios[0].Extended = ProfileResult{Result: ResultFailed, Reason: "c answered 503.", Violated: []string{"Available"}}
	c.Scenarios[1].Core = ProfileResult{Result: ResultPassed}
	c.Conclude()
	var summary bytes.Buffer
	if err := WriteConformanceSummary(&summary, c, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	page := text(renderConformance(t, c))
	for _, want := range []string{"failed beyond the KEP: c answered 503.\n", "inconclusive beyond the KEP: Available: too little pressure\n"} {
		if !strings.Contains(summary.String(), want) {
			t.Errorf("the summary does not say %q:\n%s", want, &summary)
		}
	}
	for _, want := range []string{"Failed: quiet.", "Inconclusive: rolling-upgrade.", "c answered 503.", "Available: too little pressure"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Scenarios that were not run must not be mixed up with scenarios that could not be run.
func TestConformanceEndedEarly(t *testing.T) {
	c := smallConformance()
	c.Metadata.Complete = false
	c.Scenarios[1].Core = ProfileResult{Result: ResultInconclusive, Reason: "interrupted before there was a verdict"}
	c.Scenarios[2].Core = ProfileResult{Result: ResultSkipped, Reason: NotReached}
	c.Control.Runs[0].Result, c.Control.Runs[0].Reason = ResultInconclusive, NotReached
	c.Conclude()
	const sentence = "the KEP was not seen violated; 1 of 3 scenarios passed core, 1 proved nothing, 1 not run; " +
		"the run was ended early, before its negative control was done"
	if c.Result != ResultInconclusive || c.Sentence != sentence {
		t.Errorf("%s: %s, want inconclusive: %s", c.Result, c.Sentence, sentence)
	}
	var summary bytes.Buffer
	if err := WriteConformanceSummary(&summary, c, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	page := text(renderConformance(t, c))
	for _, want := range []string{"not run: many-peers\n", "not run: 1 control run\n", "rolling-upgrade                      inconclusive: interrupted"} {
		if !strings.Contains(summary.String(), want) {
			t.Errorf("the summary does not say %q:\n%s", want, &summary)
		}
	}
	for _, want := range []string{"Not run: many-peers.", "Inconclusive: rolling-upgrade."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The grid must distinguish held, violated and unknown, and leave out what was not run.
func TestConformanceGrid(t *testing.T) {
	c := smallConformance()
	c.Scenarios[0].Extended.Findings = []int{7}
	grids := c.grids()
	want := [][]string{
		{"scenario", "NEW", "finding 7", "finding 2"}, {"rolling-upgrade", "✗", "✗", "✗"}, {"quiet", "", "✗", ""},
		{"scenarios that show it", "1", "2", "1"},
	}
	if diff := cmp.Diff(want, grids[0].Table.all()); diff != "" {
		t.Errorf("causes: %s", diff)
	}
	verdicts := grids[1].Table.all()
	if len(verdicts) != 3 || verdicts[1][0] != "rolling-upgrade" || verdicts[2][0] != "quiet" {
		t.Fatalf("verdicts: %q", verdicts)
	}
	for name, want := range map[string][2]string{
		"NoFalseNotFound":            {"✗", "✓"},
		"NoLoop":                     {"✓", "·"},
		"Available (beyond the KEP)": {"·", "✓"},
		"NoCrash":                    {"·", "·"}, // the report does not have it
	} {
		i := slices.Index(verdicts[0], name)
		if i < 0 {
			t.Fatalf("no column for %s in %q", name, verdicts[0])
		}
		if got := [2]string{verdicts[1][i], verdicts[2][i]}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestNoLinkOfAConformanceReportIsAScript(t *testing.T) {
	for _, link := range []string{"javascript:alert(1)", " JavaScript:alert(1)"} { // without a scheme before it, it would be a path
		c := smallConformance()
		c.Product.URL, c.Scenarios[0].Page, c.Control.Runs[0].Page = link, link, link
		for _, n := range elements(renderConformance(t, c), "a") {
			for _, a := range n.Attr {
				if a.Key == "href" && strings.Contains(strings.ToLower(a.Val), "javascript:") {
					t.Errorf("a link leads to %q", a.Val)
				}
			}
		}
	}
}
