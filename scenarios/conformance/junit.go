package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/skewproof/skewproof/reports"
)

// junitOf is the suite's report as JUnit XML, in which a spec took as long as its run. What a CI system makes of it agrees with the conformance report:
// where no spec failed and the result is not "passed" all the same, one more case says why. Ginkgo can write it to a file only, and says nothing if
// the disk is full.
func junitOf(r types.Report, c reports.ConformanceReport) (content []byte, err error) {
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("render %s: %w; free some space in %s", reports.JUnitFile, err, os.TempDir())
	}
	dir, err := os.MkdirTemp("", "skewproof-junit-")
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r.SpecReports = slices.Clone(r.SpecReports)
	for n := range r.SpecReports {
		if found, ok := leftBy(r.SpecReports[n]); ok && found.took() > 0 {
			r.SpecReports[n].RunTime = found.took()
		}
	}
	if r.SuiteSucceeded && c.Result != reports.ResultPassed {
		r.SuiteSucceeded = false
		r.SpecReports = append(r.SpecReports, types.SpecReport{
			LeafNodeType: types.NodeTypeReportAfterSuite, LeafNodeText: comesTo, State: types.SpecStateFailed,
			Failure: types.Failure{Message: string(c.Result) + ": " + c.Sentence},
		})
	}
	path := filepath.Join(dir, reports.JUnitFile)
	if err := reporters.GenerateJUnitReport(r, path); err != nil {
		return fail(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		return fail(err)
	}
	if content = bytes.TrimSpace(content); !bytes.HasSuffix(content, []byte("</testsuites>")) {
		return fail(errors.New("only part of it could be written"))
	}
	return append(content, '\n'), nil
}
