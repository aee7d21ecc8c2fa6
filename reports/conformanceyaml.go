package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"sigs.k8s.io/yaml"
)

// WriteConformance writes the report as YAML.
func WriteConformance(w io.Writer, c ConformanceReport) error {
	encoded, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("render %s: %w", ConformanceFile, err)
	}
	_, err = w.Write(encoded)
	return err
}

// SaveConformance writes the report into dir, which is made if it does not exist, as [ConformanceFile] and [ConformanceHTML], and junit,
// which may be nil, beside them as [JUnitFile]. As with [WriteAll] no reader ever sees half a file.
func SaveConformance(dir string, c ConformanceReport, junit []byte) error {
	var document, page bytes.Buffer
	if err := WriteConformance(&document, c); err != nil {
		return err
	}
	if err := WriteConformanceHTML(&page, c); err != nil {
		return fmt.Errorf("render %s: %w", ConformanceHTML, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory %s: %w%s", dir, err, wayOut(err))
	}
	files := []file{{filepath.Join(dir, ConformanceFile), document.Bytes()}, {filepath.Join(dir, ConformanceHTML), page.Bytes()}}
	if junit != nil {
		files = append(files, file{filepath.Join(dir, JUnitFile), junit})
	}
	return replace(files)
}

// ReadConformance reads a conformance report. It refuses a file that is none, one of another version, one with fields it does not know,
// and one whose results do not follow from each other; the error names the file and what is wrong with it.
func ReadConformance(path string) (ConformanceReport, error) {
	f, err := os.Open(path)
	if err != nil {
		return ConformanceReport{}, fmt.Errorf("read conformance report: %w", err)
	}
	defer func() { _ = f.Close() }()
	c, err := DecodeConformance(f)
	if err != nil {
		return ConformanceReport{}, fmt.Errorf("read conformance report %s: %w", path, err)
	}
	return c, nil
}

// DecodeConformance is [ReadConformance] from a stream.
func DecodeConformance(in io.Reader) (ConformanceReport, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxReport+1))
	switch {
	case err != nil:
		return ConformanceReport{}, err
	case len(data) > maxReport:
		return ConformanceReport{}, fmt.Errorf("longer than %d MiB, which no conformance report is", maxReport>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return ConformanceReport{}, errors.New("the file is empty: run the suite again to write a new report")
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(data, &head); err != nil {
		return ConformanceReport{}, fmt.Errorf("not a YAML document: %w", err)
	}
	if head.APIVersion != APIVersion || head.Kind != ConformanceKind {
		return ConformanceReport{}, fmt.Errorf("apiVersion %q, kind %q: this skewproof reads %q, %q only", head.APIVersion, head.Kind, APIVersion, ConformanceKind)
	}
	var c ConformanceReport
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return ConformanceReport{}, fmt.Errorf("not a %s: %w", ConformanceKind, err)
	}
	return c, c.check()
}

// check refuses a report that says something other than its parts do: passed must not be a matter of editing one line.
func (c ConformanceReport) check() error {
	for n, s := range c.Scenarios {
		for name, p := range map[string]ProfileResult{"core": s.Core, "extended": s.Extended} {
			switch p.Result {
			case ResultPassed:
			case ResultFailed, ResultInconclusive, ResultSkipped:
				if p.Reason == "" {
					return fmt.Errorf("scenarios[%d] (%s): %s is %s without a reason", n, s.Name, name, p.Result)
				}
			default:
				return fmt.Errorf("scenarios[%d] (%s): %s.result %q is not passed, failed, inconclusive or skipped", n, s.Name, name, p.Result)
			}
		}
	}
	again := c
	again.Control.Runs = c.Control.Runs
	again.Conclude()
	switch {
	case c.Control.Result != again.Control.Result:
		return fmt.Errorf("control.result is %q, and its runs come to %q: the file was altered", c.Control.Result, again.Control.Result)
	case c.Result != again.Result:
		return fmt.Errorf("result is %q, and its scenarios come to %q: the file was altered", c.Result, again.Result)
	case !reflect.DeepEqual(c.Profiles, again.Profiles):
		return errors.New("profiles do not count the scenarios that follow: the file was altered")
	}
	return nil
}
