package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/skewproof/skewproof/internal/invariant"
)

// ConformanceHTML is the name of the page of a conformance report.
const ConformanceHTML = "conformance.html"

var (
	conformancePage = newPage("conformance/", "conformance")
	conformanceHead = newHead(nil, "conformance/conformance.css")
)

// conformanceDocument is what the template is given.
type conformanceDocument struct {
	ConformanceReport
	head
	Lists       []conformanceList
	YAML, JUnit string
}

// conformanceList names the scenarios that have one result, for those who look for nothing else.
type conformanceList struct {
	Title string
	Names []string
}

// WriteConformanceHTML writes the report as one self-contained page, under the rules of [WriteHTML]. It has no script at all. Its links lead to
// the reports of the runs beside it.
func WriteConformanceHTML(w io.Writer, c ConformanceReport) error {
	d := conformanceDocument{ConformanceReport: c, head: conformanceHead, YAML: ConformanceFile, JUnit: JUnitFile}
	for _, list := range []struct {
		title string
		of    func(ConformanceScenario) bool
	}{
		{"Failed", func(s ConformanceScenario) bool { return c.counts(s, ResultFailed) }},
		{"Inconclusive", func(s ConformanceScenario) bool { return c.counts(s, ResultInconclusive) && !c.counts(s, ResultFailed) }},
		{"Not run", ConformanceScenario.notRun},
	} {
		if names := c.named(list.of); len(names) > 0 {
			d.Lists = append(d.Lists, conformanceList{list.title, names})
		}
	}
	return writePage(w, conformancePage, d)
}

// counts reports whether a scenario has a result in a profile that counts.
func (c ConformanceReport) counts(s ConformanceScenario, r Result) bool {
	return s.Core.Result == r || c.Metadata.Strict && s.Extended.Result == r
}

func (s ConformanceScenario) notRun() bool { return s.Core.Reason == NotReached }

// named are the names of the scenarios of which something is true.
func (c ConformanceReport) named(of func(ConformanceScenario) bool) []string {
	var names []string
	for _, s := range c.Scenarios {
		if of(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// outcomes are the outcomes whose sign and colour stand for a result.
var outcomes = map[Result]invariant.Outcome{
	ResultPassed: invariant.OutcomePass, ResultFailed: invariant.OutcomeFail,
	ResultInconclusive: invariant.OutcomeInconclusive, ResultSkipped: invariant.OutcomeInconclusive,
}

// WriteConformanceSummary writes what someone at a terminal wants to know: the result, the result of each scenario and why it did not pass, what is
// wrong with the negative control and what it does not prove, where to read on.
func WriteConformanceSummary(w io.Writer, c ConformanceReport, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	t.verdict(outcomes[c.Result], string(c.Result), c.Sentence)
	for _, p := range c.Profiles {
		fmt.Fprintf(t, "%-9s %s: %d passed, %d failed, %d inconclusive, %d skipped\n", p.Name, p.Result, p.Passed, p.Failed, p.Inconclusive, p.Skipped)
	}
	fmt.Fprintf(t, "%-9s %s: %s that must fail\n\n", "control", c.Control.Result, counted(len(c.Control.Runs), "run"))
	for _, s := range c.Scenarios {
		if s.notRun() {
			continue
		}
		fmt.Fprintf(t, "%s %-28s %s", t.sign(outcomes[s.Core.Result]), plain(s.Name), s.Core.Result)
		if s.Core.Reason != "" {
			fmt.Fprintf(t, ": %s", plain(s.Core.Reason))
		}
		fmt.Fprintln(t)
		if e := s.Extended; c.Metadata.Strict && e.Reason != s.Core.Reason && (e.Result == ResultFailed || e.Result == ResultInconclusive) {
			fmt.Fprintf(t, "%s %-28s %s beyond the KEP: %s\n", t.sign(outcomes[e.Result]), plain(s.Name), e.Result, plain(e.Reason))
		}
	}
	if names := c.named(ConformanceScenario.notRun); len(names) > 0 {
		fmt.Fprintf(t, "not run: %s\n", plain(strings.Join(names, ", ")))
	}
	notRun := 0
	for _, r := range c.Control.Runs {
		switch {
		case r.Reason == NotReached:
			notRun++
		case r.Result != ResultPassed:
			fmt.Fprintf(t, "%s control %s on %s: %s\n", t.sign(invariant.OutcomeFail), plain(r.Scenario), plain(r.Subject), plain(r.Reason))
		}
	}
	if notRun > 0 {
		fmt.Fprintf(t, "not run: %s\n", counted(notRun, "control run"))
	}
	for _, u := range c.Control.Unproven {
		fmt.Fprintf(t, "no control run of %s: %s\n", plain(u.Scenario), plain(u.Reason))
	}
	return t.end(w, ConformanceHTML, ConformanceFile)
}
