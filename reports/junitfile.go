package reports

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"io"
	"strconv"
	"time"
)

// JUnitSuite is a document of JUnit XML with one test suite. It has only the elements and
// attributes that Jenkins' schema (junit-10.xsd of its xUnit plugin) and GitLab know.
type JUnitSuite struct {
	Name    string `xml:"name,attr"`
	Package string `xml:"package,attr,omitempty"`
	// Tests, Failures, Errors and Skipped count the cases. [JUnitSuite.Encode] sets them.
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     JUnitSeconds `xml:"time,attr"`
	// Timestamp is the start. The zero value, of a simulated run, is left out.
	Timestamp  JUnitTime       `xml:"timestamp,attr,omitempty"`
	Properties []JUnitProperty `xml:"properties>property"`
	Cases      []JUnitCase     `xml:"testcase"`
}

// JUnitProperty is a fact about the suite.
type JUnitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// JUnitCase is a test case. It passed if Skipped, Error and Failure are nil.
type JUnitCase struct {
	Name      string        `xml:"name,attr"`
	Classname string        `xml:"classname,attr"`
	Time      JUnitSeconds  `xml:"time,attr"`
	Skipped   *JUnitMessage `xml:"skipped,omitempty"`
	Error     *JUnitMessage `xml:"error,omitempty"`
	Failure   *JUnitMessage `xml:"failure,omitempty"`
	SystemOut string        `xml:"system-out,omitempty"`
}

// JUnitMessage says why a case did not pass. Jenkins shows Message. GitLab shows only Text; if Text
// is empty, [JUnitSuite.Encode] repeats Message there.
type JUnitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnitSeconds is a time in seconds. Jenkins' schema allows three digits after the point.
type JUnitSeconds Seconds

// MarshalText writes the time.
func (s JUnitSeconds) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'f', 3, 64), nil
}

// JUnitTime is an instant, as JUnit writes it.
type JUnitTime string

// NewJUnitTime is the instant t. It is "" for the zero value of t.
func NewJUnitTime(t time.Time) JUnitTime {
	if t.IsZero() {
		return ""
	}
	return JUnitTime(t.UTC().Format("2006-01-02T15:04:05"))
}

// Encode counts the cases and encodes the suite. Its texts are [Printable], because viewers show
// them as they are.
func (s JUnitSuite) Encode() ([]byte, error) {
	for n := range s.Cases {
		c := &s.Cases[n]
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
		for _, m := range []*JUnitMessage{c.Failure, c.Error} {
			if m != nil {
				m.Text = cmp.Or(m.Text, m.Message)
			}
		}
	}
	content, err := xml.MarshalIndent(struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     JUnitSeconds `xml:"time,attr"`
		Suite    JUnitSuite   `xml:"testsuite"`
	}{Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Time: s.Time, Suite: s}, "", "  ")
	content = bytes.ReplaceAll(content, []byte("&#xD;"), []byte(" "))
	return append([]byte(xml.Header), append(bytes.Map(printable, content), '\n')...), err
}

func (s JUnitSuite) write(w io.Writer) error {
	content, err := s.Encode()
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}
