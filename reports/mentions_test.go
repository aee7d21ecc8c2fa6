package reports

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

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
	if r := New(smallRun(), smallVerdicts(), Options{Findings: findings.Catalogue{}}); len(r.Findings) != 0 {
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
