package reports

import (
	"bytes"
	"encoding/xml"
	"io"
	"reflect"
	"strings"
	"testing"
)

// A user writes the label, and a binary describes itself. In a terminal, both stay one line without
// control characters. In JUnit, they stay text.
func TestHostileIdentitiesStayText(t *testing.T) {
	const control = "\x1b[31m\u009b2J\r\nfake: line </property><testsuite \"x"
	r, c, m := small(), smallConformance(), smallMatrix()
	for _, tested := range []*Tested{&r.Metadata.Tested, &c.Product.Tested, &m.Metadata.Tested} {
		poison(reflect.ValueOf(tested).Elem(), control)
	}
	for name, write := range map[string]func(io.Writer) error{
		"run":         func(w io.Writer) error { return WriteSummary(w, r, SummaryOptions{}) },
		"conformance": func(w io.Writer) error { return WriteConformanceSummary(w, c, SummaryOptions{}) },
		"matrix":      func(w io.Writer) error { return WriteTables(w, m, SummaryOptions{}) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if out := b.String(); strings.ContainsAny(out, "\x1b\u009b\r") || strings.Contains(out, "\nfake") || !strings.Contains(out, "fake: line") {
			t.Errorf("%s: %q", name, out)
		}
	}
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	suites := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("junit.xml is not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "testsuite" {
			suites++
		}
	}
	if suites != 1 {
		t.Errorf("%d suites", suites)
	}
}

// NEW violations come first, and every failure says which findings explain it.
func TestSuitePagesShowWhatIsNewFirst(t *testing.T) {
	c, m := smallConformance(), smallMatrix()
	m.Cells[0].Core.New, m.Cells[0].Core.Result = 0, ResultKnown
	m.Cells = append(m.Cells, m.Cells[0])
	last := &m.Cells[len(m.Cells)-1]
	last.Scenario, last.Core.New, last.Core.Result = "peer-crash", 4, ResultFailed
	for name, page := range map[string]struct{ text, first, second string }{
		"conformance": {text(renderConformance(t, c)), "NEW: 3", "Nothing is done."},
		"matrix":      {text(renderMatrix(t, m)), "NEW: 4", "quietbuiltinknown"},
	} {
		i, j := strings.Index(page.text, page.first), strings.Index(page.text, page.second)
		if i < 0 || j < 0 || i > j {
			t.Errorf("%s: %q at %d, %q at %d", name, page.first, i, page.second, j)
		}
	}
	var summary bytes.Buffer
	if err := WriteConformanceSummary(&summary, c, SummaryOptions{}); err != nil {
		t.Fatal(err)
	}
	if i, j := strings.Index(summary.String(), "failed (NEW: 3; findings 2 and 7)"), strings.Index(summary.String(), "quiet"); i < 0 || i > j {
		t.Errorf("the summary is\n%s", &summary)
	}
}
