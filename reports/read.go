package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/skewproof/skewproof/internal/invariant"
)

// maxDocument is the largest document, in bytes. Run reports are below 1 MiB; campaigns contain
// repros.
const maxDocument = 64 << 20

// readable is a kind of document that can be read back.
type readable[T any] struct {
	noun  string        // "run report"
	kind  string        // of the object
	again string        // how to make a new one: "judge the saved history again to write a new report"
	yaml  bool          // the document is YAML rather than JSON
	check func(T) error // refuses a document that contradicts itself
}

// read reads a file. The error names the file and what is wrong with it.
func (d readable[T]) read(path string) (T, error) {
	f, err := os.Open(path)
	if err != nil {
		return *new(T), fmt.Errorf("read %s: %w", d.noun, err)
	}
	defer func() { _ = f.Close() }()
	document, err := d.decode(f)
	if err != nil {
		return *new(T), fmt.Errorf("read %s %s: %w", d.noun, path, err)
	}
	return document, nil
}

// decode refuses another kind or version, unknown fields, and a document that contradicts itself.
func (d readable[T]) decode(in io.Reader) (T, error) {
	var none, document T
	data, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return none, err
	case len(data) > maxDocument:
		return none, fmt.Errorf("longer than %d MiB, which no %s is", maxDocument>>20, d.noun)
	case len(bytes.TrimSpace(data)) == 0:
		return none, errors.New("the file is empty: " + d.again)
	}
	if d.yaml {
		if data, err = yaml.YAMLToJSONStrict(data); err != nil {
			return none, fmt.Errorf("not a YAML document: %w", err)
		}
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return none, fmt.Errorf("not a JSON document: %w", err)
	}
	if head.APIVersion != APIVersion || head.Kind != d.kind {
		return none, fmt.Errorf("apiVersion %q, kind %q: this skewproof reads %q, %q only", head.APIVersion, head.Kind, APIVersion, d.kind)
	}
	fields := json.NewDecoder(bytes.NewReader(data))
	fields.DisallowUnknownFields()
	if err := fields.Decode(&document); err != nil {
		return none, fmt.Errorf("not a %s of this skewproof: %w: %s", d.kind, err, d.again)
	}
	if err := d.check(document); err != nil {
		return none, err
	}
	return document, nil
}

// rendering is one form of a document, in a file of its own.
type rendering[T any] struct {
	name   string
	render func(io.Writer, T) error
}

// save renders a document in each form and writes all files and others into dir, or none of them.
// It makes dir if dir does not exist.
func save[T any](dir string, document T, forms []rendering[T], others ...file) error {
	files := make([]file, 0, len(forms)+len(others))
	for _, f := range forms {
		var b bytes.Buffer
		if err := f.render(&b, document); err != nil {
			return fmt.Errorf("render %s: %w", f.name, err)
		}
		files = append(files, file{filepath.Join(dir, f.name), b.Bytes()})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the report directory %s: %w%s", dir, err, wayOut(err))
	}
	return replace(append(files, others...))
}

// writeIndented writes a document as JSON that people can read.
func writeIndented[T any](w io.Writer, document T) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(document)
}

// A file with values beyond these limits is broken.
const (
	latest = 1e8           // seconds: three years
	most   = 1_000_000_000 // requests in one bucket
)

var runReports = readable[RunReport]{"report", Kind, "judge the saved history again to write a new report", false, RunReport.check}

// Read reads a run report. It refuses any other document, another version and unknown fields. The
// error names the file and what is wrong with it.
func Read(path string) (RunReport, error) { return runReports.read(path) }

// check refuses a report that the renderings could not show truthfully.
func (r RunReport) check() error {
	if _, ok := words[r.Verdict.Outcome]; !ok {
		return fmt.Errorf("verdict.outcome %q is not fail, inconclusive, known or pass", r.Verdict.Outcome)
	}
	whole := r.Metadata.Complete && r.Metadata.Error == ""
	for n, i := range r.Invariants {
		if err := i.check(whole); err != nil {
			return fmt.Errorf("invariants[%d] (%s): %w", n, i.Name, err)
		}
	}
	if s := r.Standing(); r.Verdict.Outcome != s.Outcome() {
		return fmt.Errorf("verdict.outcome is %q, which contradicts the invariants: they make it %q; %s", r.Verdict.Outcome, s.Outcome(), altered)
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

// check refuses a verdict that contradicts its own figures. whole is true if every step was carried
// out.
func (i Invariant) check(whole bool) error {
	switch {
	case !known(i.Outcome):
		return fmt.Errorf("verdict %q is not pass, fail or inconclusive", i.Outcome)
	case i.Grade != invariant.GradeCore && i.Grade != invariant.GradeExtended:
		return fmt.Errorf("grade %q is not core or extended", i.Grade)
	case (i.Outcome == invariant.OutcomeFail) != (i.Violations > 0):
		return fmt.Errorf("verdict %q with %d violations: %s", i.Outcome, i.Violations, altered)
	case i.Outcome != invariant.OutcomePass:
		return nil
	case !whole:
		return fmt.Errorf("verdict %q on a run that ended early: %s", i.Outcome, altered)
	case i.Checked < 1 || i.Overloaded > 0:
		return fmt.Errorf("verdict %q, and %d observations judged, %d left out because the machine was too slow: %s", i.Outcome, i.Checked,
			i.Overloaded, altered)
	}
	return nil
}

// altered says what to do about a report that contradicts itself.
const altered = "the file was altered, or a skewproof wrote it that counts otherwise; judge the saved history again"

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
		all := l.Buckets
		for _, r := range l.Rows {
			all = append(slices.Clip(all), r.Buckets...)
		}
		for n, b := range all {
			counts := []int{b.Wrong, b.Success, b.MissingObject, b.UnservedResource, b.MissingResource, b.Unavailable, b.ServerError, b.NoResponse,
				b.Other}
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

func known(o invariant.Outcome) bool {
	return o == invariant.OutcomePass || o == invariant.OutcomeFail || o == invariant.OutcomeInconclusive
}
