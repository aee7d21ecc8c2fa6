package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// WriteConformance writes the report as YAML: fields in the order in which they are declared, and no line folded, since some of them are
// command lines that people copy.
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

// escaped makes YAML of JSON, by escaping the characters that break a line in YAML only.
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

// lay lays a document out as people write it: one value a line, and quotes only where they are needed.
func lay(n *yamlnode.Node) {
	n.Style &^= yamlnode.FlowStyle
	if n.Kind == yamlnode.ScalarNode && n.Tag == "!!str" && plainWord.MatchString(n.Value) && !oldWord[strings.ToLower(n.Value)] {
		n.Style = 0
	}
	for _, child := range n.Content {
		lay(child)
	}
}

// oldWord are strings that some readers of YAML take for a boolean, null or a number.
var oldWord = map[string]bool{"no": true, "yes": true, "on": true, "off": true, "true": true, "false": true, "null": true, "nan": true, "inf": true}

// SaveConformance writes the report into dir, which is made if it does not exist, as [ConformanceFile] and [ConformanceHTML], and junit,
// which may be nil, beside them as [JUnitFile]. As with [WriteAll] no reader ever sees half a file.
func SaveConformance(dir string, c ConformanceReport, junit []byte) error {
	var others []file
	if junit != nil {
		others = append(others, file{filepath.Join(dir, JUnitFile), junit})
	}
	return save(dir, c, []rendering[ConformanceReport]{{ConformanceFile, WriteConformance}, {ConformanceHTML, WriteConformanceHTML}}, others...)
}

var conformanceReports = readable[ConformanceReport]{
	"conformance report", ConformanceKind, "run the suite again to write a new report", true, ConformanceReport.check,
}

// ReadConformance reads a conformance report. It refuses a file that is none, one of another version, one with fields it does not know,
// and one whose results do not follow from each other; the error names the file and what is wrong with it.
func ReadConformance(path string) (ConformanceReport, error) { return conformanceReports.read(path) }

// check refuses a report whose results do not follow from its parts: passed must not be a matter of editing one line.
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
	case !reflect.DeepEqual(c.Profiles, again.Profiles):
		return errors.New("profiles do not count the scenarios that follow: the file was altered")
	}
	return nil
}

// check refuses a result that is none, and one that is passed with a reason why it is not.
func (p ProfileResult) check() error {
	if _, ok := outcomes[p.Result]; !ok {
		return fmt.Errorf("result %q is not passed, failed, inconclusive or skipped", p.Result)
	}
	if p.Result == ResultPassed && (p.Reason != "" || len(p.Violated) > 0) {
		return fmt.Errorf("is passed, with the reason %q why it is not, and [%s] violated: the file was altered", p.Reason, strings.Join(p.Violated, ", "))
	}
	return nil
}
