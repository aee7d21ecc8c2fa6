package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/skewproof/skewproof/internal/invariant"
)

// WriteConformance writes the report as YAML, with fields in the order of their declaration. It
// does not fold lines, because people copy command lines.
func WriteConformance(w io.Writer, c ConformanceReport) error {
	fail := func(err error) error { return fmt.Errorf("render %s: %w", ConformanceFile, err) }
	encoded, err := json.Marshal(c)
	if err != nil {
		return fail(err)
	}
	var document yamlnode.Node
	if err := yamlnode.Unmarshal(escaped(encoded), &document); err != nil {
		return fail(err)
	}
	lay(&document)
	var b bytes.Buffer
	encoder := yamlnode.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(&document), encoder.Close()); err != nil {
		return fail(err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// escaped turns JSON into YAML. It escapes the characters that break a line only in YAML.
func escaped(encoded []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(encoded) {
		if r >= 0x7f && r <= 0xa0 || r == 0xfeff {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes()
}

// plainWord matches strings that every reader of YAML reads as the same string without quotes.
var plainWord = regexp.MustCompile(`^[A-Za-z/“(][^:#\x00-\x1f\x7f-\x{a0}\x{2028}\x{2029}\x{feff}]*[^:#\s\x00-\x1f\x7f-\x{a0}]$`)

// lay formats a document as people write YAML: one value a line, and quotes only if they are
// needed.
func lay(n *yamlnode.Node) {
	n.Style &^= yamlnode.FlowStyle
	if n.Kind == yamlnode.ScalarNode && n.Tag == "!!str" && plainWord.MatchString(n.Value) && !oldWord[strings.ToLower(n.Value)] {
		n.Style = 0
	}
	for _, child := range n.Content {
		lay(child)
	}
}

// oldWord holds strings that some readers of YAML read as a boolean, null or a number.
var oldWord = map[string]bool{"no": true, "yes": true, "on": true, "off": true, "true": true, "false": true, "null": true, "nan": true, "inf": true}

// SaveConformance writes the report into dir as [ConformanceFile] and [ConformanceHTML]. It also
// writes junit, if not nil, as [JUnitFile]. It makes dir if dir does not exist. It is as atomic as
// [WriteAll].
func SaveConformance(dir string, c ConformanceReport, junit []byte) error {
	var others []file
	if junit != nil {
		others = append(others, file{filepath.Join(dir, JUnitFile), junit})
	}
	return save(dir, c, []rendering[ConformanceReport]{{ConformanceFile, WriteConformance}, {ConformanceHTML, WriteConformanceHTML}},
		others...)
}

var conformanceReports = readable[ConformanceReport]{
	"conformance report", ConformanceKind, "run the suite again to write a new report", true, ConformanceReport.check,
}

// ReadConformance reads a conformance report. It refuses any other document, unknown fields and
// results that do not follow from each other. The error names the file and what is wrong with it.
func ReadConformance(path string) (ConformanceReport, error) { return conformanceReports.read(path) }

// check refuses results that do not follow from each other, so that editing one line cannot make a
// pass.
func (c ConformanceReport) check() error {
	for n, s := range c.Scenarios {
		for _, p := range []struct {
			name string
			ProfileResult
		}{{"core", s.Core}, {"extended", s.Extended}} {
			if err := p.check(); err != nil {
				return fmt.Errorf("scenarios[%d] (%s): %s %w", n, s.Name, p.name, err)
			}
			if p.Result != ResultPassed && p.Reason == "" {
				return fmt.Errorf("scenarios[%d] (%s): %s is %s without a reason", n, s.Name, p.name, p.Result)
			}
		}
	}
	again := c
	again.Conclude()
	switch {
	case c.Control.Result != again.Control.Result:
		return fmt.Errorf("control.result is %q, and its runs make it %q: the file was altered", c.Control.Result, again.Control.Result)
	case c.Result != again.Result:
		return fmt.Errorf("result is %q, and its scenarios make it %q: the file was altered", c.Result, again.Result)
	case !slices.Equal(c.Profiles, again.Profiles):
		return errors.New("profiles do not count the scenarios that follow: the file was altered")
	}
	return nil
}

// check refuses an unknown result, and a passed result with a reason why it did not pass.
func (p ProfileResult) check() error {
	if _, ok := outcomes[p.Result]; !ok {
		return fmt.Errorf("result %q is not passed, known, failed, inconclusive or skipped", p.Result)
	}
	all := slices.Sorted(slices.Values(slices.Concat(p.Held, p.Violated, p.Undecided)))
	for i, name := range all {
		if i > 0 && name == all[i-1] {
			return fmt.Errorf("has two verdicts on %s: the file was altered", name)
		}
	}
	if p.Result == ResultPassed && (p.Reason != "" || len(p.Violated) > 0) {
		return fmt.Errorf("is passed, with the reason %q why it is not, and [%s] violated: the file was altered", p.Reason,
			strings.Join(p.Violated, ", "))
	}
	return nil
}

// ConformanceHTML is the name of the page of a conformance report.
const ConformanceHTML = "conformance.html"

var (
	conformancePage = newPage("conformance/", "conformance")
	conformanceHead = newHead(nil, "table/table.css", "conformance/conformance.css")
)

// conformanceDocument is the input of the template.
type conformanceDocument struct {
	ConformanceReport
	head
	*described
	Lists       []conformanceList
	Grids       []section
	YAML, JUnit string
}

// conformanceList names the scenarios with one result, for readers who look only for that result.
type conformanceList struct {
	Title string
	Names []string
}

// WriteConformanceHTML writes the report as one self-contained page without scripts, like
// [WriteHTML]. The page links to the reports of the runs, which are in the same directory.
func WriteConformanceHTML(w io.Writer, c ConformanceReport) error {
	d := conformanceDocument{
		ConformanceReport: c, head: conformanceHead, described: newDescribed(), Grids: c.grids(), YAML: ConformanceFile, JUnit: JUnitFile,
	}
	for n := range d.Grids {
		d.Grids[n].described = d.described
	}
	for _, list := range []struct {
		title string
		of    func(ConformanceScenario) bool
	}{
		{"Failed", func(s ConformanceScenario) bool { return c.counts(s, ResultFailed) }},
		{"Known", func(s ConformanceScenario) bool { return c.counts(s, ResultKnown) && !c.counts(s, ResultFailed) }},
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

// named returns the names of the scenarios for which of is true.
func (c ConformanceReport) named(of func(ConformanceScenario) bool) []string {
	var names []string
	for _, s := range c.Scenarios {
		if of(s) {
			names = append(names, s.Name)
		}
	}
	return names
}

// WriteConformanceSummary writes the report for a terminal: the result of each scenario and the
// reason if it did not pass, problems of the negative control, and the files with more details.
func WriteConformanceSummary(w io.Writer, c ConformanceReport, opts SummaryOptions) error {
	t := &terminal{SummaryOptions: opts}
	t.verdict(c.Result.Outcome(), c.Sentence)
	c.Product.summarize(t)
	for _, p := range c.Profiles {
		fmt.Fprintf(t, "%-9s %s: %d passed, %d known, %d failed, %d inconclusive, %d skipped\n", p.Name, p.Result, p.Passed, p.Known, p.Failed,
			p.Inconclusive, p.Skipped)
	}
	failed := 0
	for _, r := range c.Control.Runs {
		failed += truth(r.Result == ResultPassed, false)
	}
	fmt.Fprintf(t, "%-9s %s: %d of %s failed, as they must\n\n", "control", c.Control.Result, failed, counted(len(c.Control.Runs), "run"))
	for _, s := range c.NewFirst() {
		if s.notRun() {
			continue
		}
		fmt.Fprintf(t, "%s %-36s %s", t.sign(s.Core.Result.Outcome()), plain(s.Name), s.Core.Result)
		if label := s.Core.Attribution(); label != "" {
			fmt.Fprintf(t, " (%s)", label)
		}
		if s.Core.Reason != "" {
			fmt.Fprintf(t, ": %s", plain(s.Core.Reason))
		}
		fmt.Fprintln(t)
		if e := s.Extended; c.Metadata.Strict && e.Reason != s.Core.Reason && e.Result != ResultPassed && e.Result != ResultSkipped {
			fmt.Fprintf(t, "%s %-36s %s beyond the KEP: %s\n", t.sign(e.Result.Outcome()), plain(s.Name), e.Result, plain(e.Reason))
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
	return t.end(w, ConformanceHTML, ConformanceFile, JUnitFile)
}
