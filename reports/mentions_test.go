package reports

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/skewproof/skewproof/reports/findings"
)

func TestMentionsAreLinked(t *testing.T) {
	m := mentions{"2": "#finding-2", "7": "#finding-7", "1000": "#finding-1000", "NoLoop": "#NoLoop"}
	for text, want := range map[string][]part{
		"":                     nil,
		"nothing 2 of NoLoops": {{"nothing 2 of NoLoops", ""}},
		"All violations are known: finding 2.": {
			{"All violations are known: ", ""}, {"finding 2", "#finding-2"}, {".", ""},
		},
		"NoLoop: findings 2, 7, 8 and 1000": {
			{"NoLoop", "#NoLoop"}, {": findings ", ""}, {"2", "#finding-2"}, {", ", ""}, {"7", "#finding-7"}, {", 8 and ", ""}, {"1000", "#finding-1000"},
		},
		"Finding 7 and NoLoop":        {{"Finding 7", "#finding-7"}, {" and ", ""}, {"NoLoop", "#NoLoop"}},
		"finding 20, finding 2000":    {{"finding 20, finding 2000", ""}},
		"<a href=\"x\">finding 2</a>": {{"<a href=\"x\">", ""}, {"finding 2", "#finding-2"}, {"</a>", ""}},
	} {
		got := m.in(text)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The report describes the findings that it names, and no others, also after it was saved.
func TestReportDescribesItsFindings(t *testing.T) {
	r := small()
	if len(r.Findings) == 0 || len(r.Findings) > 5 {
		t.Fatalf("%d findings are described", len(r.Findings))
	}
	page := text(render(t, r))
	for _, n := range r.Findings {
		if n.Title == "" || n.Symptom == "" || !strings.Contains(page, n.Symptom) || !strings.Contains(page, n.Impact) {
			t.Errorf("finding %d is not described", n.Number)
		}
	}
	leads := map[string]bool{}
	for _, a := range elements(render(t, r), "a") {
		leads[a.Attr[0].Val] = true
	}
	for _, n := range r.Findings {
		if link := newMentions(r)[strconv.Itoa(n.Number)]; !leads[link] {
			t.Errorf("no link leads to %q", link)
		}
	}
	if r := reportOf(smallRun(), smallVerdicts(), Options{Findings: findings.Catalogue{}}); len(r.Findings) != 0 {
		t.Errorf("without a catalogue %d findings are described", len(r.Findings))
	}
}

// A finding that did not appear is described too.
func TestMissingFindingsAreDescribed(t *testing.T) {
	r := small()
	r.Verdict.Missing = []Known{{Finding: 43}}
	if notes := newNotes(r, findings.All()); notes[len(notes)-1].Number != 43 {
		t.Errorf("the last finding is %+v", notes[len(notes)-1])
	}
}

// Pages about many runs link every finding that they name to a description on the page.
func TestPagesOfManyRunsDescribeTheirFindings(t *testing.T) {
	suite, matrix, campaign := smallConformance(), smallMatrix(), smallCampaign()
	suite.Scenarios[0].Core.Findings, suite.Scenarios[0].Extended.Reason = []int{2, 7}, "violated (finding 9)"
	matrix.Cells[0].Core.Findings = []int{2, 1000} // the second one is the user's own
	campaign.Findings[0].Finding = 2
	for name, c := range map[string]struct {
		page  *html.Node
		wants []int
	}{
		"conformance": {renderConformance(t, suite), []int{2, 7, 9}}, "matrix": {renderMatrix(t, matrix), []int{2}},
		"campaign": {renderCampaign(t, campaign), []int{2}},
	} {
		leads, said := map[string]bool{}, text(c.page)
		for _, a := range elements(c.page, "a") {
			for _, attribute := range a.Attr {
				leads[attribute.Val] = true
			}
		}
		for _, number := range c.wants {
			known := findings.All()
			f := known[slices.IndexFunc(known, func(f findings.Finding) bool { return f.Number == number })]
			if !leads["#finding-"+strconv.Itoa(number)] || strings.Count(said, fmt.Sprintf("Finding %d: ", number)) != 1 ||
				!strings.Contains(said, strings.ReplaceAll(f.Symptom, "`", "")) {
				t.Errorf("%s: finding %d is not linked, or not described once", name, number)
			}
		}
		if leads["#finding-1000"] || strings.Contains(said, "Finding 12: ") {
			t.Errorf("%s: a finding is linked that the page does not describe, or described that it does not name", name)
		}
	}
}
