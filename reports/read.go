package reports

import (
	"fmt"
	"io"
	"slices"

	"github.com/skewproof/skewproof/internal/invariant"
)

// What lies beyond these bounds is a broken file.
const (
	latest = 1e8           // seconds: three years
	most   = 1_000_000_000 // requests in one bucket
)

var runReports = readable[RunReport]{"report", Kind, "judge the saved history again to write a new report", inJSON, RunReport.check}

// Read reads a report that was saved as JSON. It refuses a file that is no run report, one of another version and one with
// fields it does not know; the error names the file and what is wrong with it.
func Read(path string) (RunReport, error) { return runReports.read(path) }

// Decode is [Read] from a stream.
func Decode(in io.Reader) (RunReport, error) { return runReports.decode(in) }

// check refuses what the renderings could not show truthfully.
func (r RunReport) check() error {
	if !known(r.Verdict.Outcome) {
		return fmt.Errorf("verdict.outcome %q is not pass, fail or inconclusive", r.Verdict.Outcome)
	}
	failed := false
	for n, i := range r.Invariants {
		if !known(i.Verdict) {
			return fmt.Errorf("invariants[%d] (%s): verdict %q is not pass, fail or inconclusive", n, i.Name, i.Verdict)
		}
		if i.Grade != invariant.GradeCore && i.Grade != invariant.GradeExtended {
			return fmt.Errorf("invariants[%d] (%s): grade %q is not core or extended", n, i.Name, i.Grade)
		}
		failed = failed || i.Verdict == invariant.OutcomeFail && r.Decides(i)
	}
	if failed != (r.Verdict.Outcome == invariant.OutcomeFail) {
		return fmt.Errorf("verdict.outcome is %q, which contradicts the invariants: the file was altered", r.Verdict.Outcome)
	}
	for n, s := range r.Steps {
		if err := window(s.StartSeconds, s.EndSeconds); err != nil {
			return fmt.Errorf("steps[%d]: %w", n, err)
		}
	}
	for n, f := range r.Faults {
		if err := window(f.StartSeconds, f.EndSeconds); err != nil {
			return fmt.Errorf("faults[%d]: %w", n, err)
		}
	}
	return r.Timeline.check()
}

func (t Timeline) check() error {
	if err := window(0, t.EndSeconds); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if t.BucketSeconds <= 0 {
		return fmt.Errorf("timeline.bucketSeconds is %v: it must be positive", t.BucketSeconds)
	}
	for _, l := range t.Lanes {
		for n, s := range l.States {
			if err := window(s.StartSeconds, s.EndSeconds); err != nil {
				return fmt.Errorf("timeline of %q, states[%d]: %w", l.Server, n, err)
			}
		}
		for n, b := range l.Buckets {
			counts := []int{b.Success, b.MissingObject, b.UnservedResource, b.MissingResource, b.Unavailable, b.ServerError, b.NoResponse, b.Other}
			if slices.Min(counts) < 0 || slices.Max(counts) > most {
				return fmt.Errorf("timeline of %q, buckets[%d]: a count that no run can have", l.Server, n)
			}
		}
	}
	return nil
}

func window(start, end Seconds) error {
	if start < 0 || end < start || end > latest {
		return fmt.Errorf("from %v s to %v s is not a window of time within a run", start, end)
	}
	return nil
}

func unknown(o invariant.Outcome) bool { return !known(o) }

func known(o invariant.Outcome) bool {
	return o == invariant.OutcomePass || o == invariant.OutcomeFail || o == invariant.OutcomeInconclusive
}
