package upstreame2e

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/skewproof/skewproof/reports"
)

// maxResults bounds a file of results, in bytes. A file with all specs has a megabyte.
const maxResults = 256 << 20

// maxMessage bounds the stored message of a failed spec, in bytes.
const maxMessage = 4 << 10

// Result is the result of one spec.
type Result struct {
	Outcome reports.SpecOutcome
	// Message says why it failed, was skipped or was not run. It is empty if it passed.
	Message string
	Took    time.Duration
}

// Results are the results of a run of the tests.
type Results struct {
	// Specs are the results by the full name of the spec.
	Specs map[string]Result
	// Setup says why the setup of the whole suite failed. It is empty if the setup succeeded.
	Setup string
	// Took is how long the suite took.
	Took time.Duration
}

// ReadResultsFile reads the results that e2e.test left in a file.
func ReadResultsFile(path string) (Results, error) {
	f, err := os.Open(path)
	if err != nil {
		return Results{}, fmt.Errorf("read the results of Kubernetes' tests: %w", err)
	}
	defer func() { _ = f.Close() }()
	r, err := ReadResults(f)
	if err != nil {
		return Results{}, fmt.Errorf("read the results of Kubernetes' tests in %s: %w", path, err)
	}
	return r, nil
}

// ReadResults reads results in JUnit XML, as e2e.test writes them. It refuses a file that
// contradicts itself: counts that differ from the cases, a spec that occurs twice, an unknown
// status, and a status that contradicts the elements of its case.
// Source: k8s.io/kubernetes test/e2e/framework/internal/junit; ginkgo/v2 reporters/junit_report.go
func ReadResults(r io.Reader) (Results, error) {
	limited := &io.LimitedReader{R: r, N: maxResults + 1}
	var document reporters.JUnitTestSuites
	decoder := xml.NewDecoder(limited)
	err := decoder.Decode(&document)
	if err == nil && !errors.Is(decoder.Decode(&struct{}{}), io.EOF) {
		err = errors.New("something follows its end")
	}
	switch {
	case limited.N <= 0:
		return Results{}, fmt.Errorf("longer than %d MiB, which no results are", maxResults>>20)
	case err != nil:
		return Results{}, fmt.Errorf("not a JUnit XML document: %w", err)
	case len(document.TestSuites) != 1:
		return Results{}, fmt.Errorf("%d suites: want the one of e2e.test", len(document.TestSuites))
	}
	suite := document.TestSuites[0]
	if suite.Tests != len(suite.TestCases) {
		return Results{}, fmt.Errorf("it says that it has %d cases, and has %d: it is cut short, or was altered", suite.Tests,
			len(suite.TestCases))
	}
	took, err := seconds(suite.Time)
	if err != nil {
		return Results{}, fmt.Errorf("suite: %w", err)
	}
	results := Results{Specs: map[string]Result{}, Took: took}
	for _, c := range suite.TestCases {
		result, err := resultOf(c)
		if err != nil {
			return Results{}, fmt.Errorf("case %q: %w", c.Name, err)
		}
		name, isSpec := strings.CutPrefix(c.Name, "[It] ")
		if !isSpec {
			if result.Outcome == reports.SpecFailed || result.Outcome == reports.SpecNotRun {
				results.Setup = c.Name + ": " + result.Message
			}
			continue
		}
		if _, twice := results.Specs[name]; twice {
			return Results{}, fmt.Errorf("case %q is there twice", c.Name)
		}
		results.Specs[name] = result
	}
	return results, nil
}

// states are the statuses of a case (ginkgo/v2/types.SpecState): which element such a case has,
// what it says of the spec, and what goes before its message.
var states = map[string]struct {
	element string
	outcome reports.SpecOutcome
	before  string
}{
	"passed": {"", reports.SpecPassed, ""}, "skipped": {"skipped", reports.SpecSkipped, ""}, "pending": {"skipped", reports.SpecSkipped, ""},
	"failed": {"failure", reports.SpecFailed, ""}, "timedout": {"failure", reports.SpecFailed, ""}, "panicked": {"error", reports.SpecFailed, "panicked: "},
	"aborted": {"failure", reports.SpecNotRun, "aborted: "}, "interrupted": {"error", reports.SpecNotRun, "interrupted: "},
}

// resultOf returns the result of a case.
func resultOf(c reporters.JUnitTestCase) (Result, error) {
	took, err := seconds(c.Time)
	if err != nil {
		return Result{}, err
	}
	said := map[string][]string{} // by element
	if c.Failure != nil {
		said["failure"] = []string{c.Failure.Message, c.Failure.Description}
	}
	if c.Error != nil {
		said["error"] = []string{c.Error.Message, c.Error.Description}
	}
	if c.Skipped != nil {
		said["skipped"] = []string{c.Skipped.Message}
	}
	state, known := states[c.Status]
	elements := slices.Sorted(maps.Keys(said))
	switch {
	case !known:
		return Result{}, fmt.Errorf("unknown status %q", c.Status)
	case strings.Join(elements, ", ") != state.element:
		return Result{}, fmt.Errorf("its status is %q, and it has the elements %q: want %q", c.Status, elements, state.element)
	}
	r := Result{Outcome: state.outcome, Took: took}
	switch state.element {
	case "skipped":
		r.Outcome, r.Message = skipped(c.Skipped.Message)
	case "failure", "error":
		r.Message = message(append([]string{state.before + said[state.element][0]}, said[state.element][1:]...)...)
	}
	return r, nil
}

// skipped distinguishes a spec that skipped itself with a reason from a spec that never began.
func skipped(why string) (reports.SpecOutcome, string) {
	if reason, itself := strings.CutPrefix(why, "skipped - "); itself {
		return reports.SpecSkipped, message(reason)
	}
	return reports.SpecNotRun, why
}

// message joins the parts that are not empty, and shortens the result to maxMessage.
func message(parts ...string) string {
	said := strings.TrimSpace(strings.Join(slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n"))
	said = strings.ToValidUTF8(said, "?")
	if len(said) > maxMessage {
		said = strings.ToValidUTF8(said[:maxMessage], "") + " …"
	}
	return said
}

func seconds(s float64) (time.Duration, error) {
	if !(s >= 0 && s <= math.MaxInt32) { // NaN is refused too
		return 0, fmt.Errorf("time %v: want seconds", s)
	}
	return time.Duration(s * float64(time.Second)), nil
}
