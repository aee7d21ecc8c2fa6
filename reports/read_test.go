package reports

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/invariant"
)

func encoded(t testing.TB, r RunReport) string {
	t.Helper()
	var b bytes.Buffer
	if err := writeIndented(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRoundTrip(t *testing.T) {
	poisoned := small()
	apiVersion, kind := poisoned.APIVersion, poisoned.Kind
	poison(reflect.ValueOf(&poisoned).Elem(), hostile)
	poisoned.APIVersion, poisoned.Kind = apiVersion, kind
	poisoned.Metadata.Error = "" // no profile passes in a run that ended early
	big := bigRun()
	for name, want := range map[string]RunReport{
		"small":   small(),
		"hostile": poisoned,
		"big":     reportOf(big, nil, Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), JSONFile)
			if err := os.WriteFile(path, []byte(encoded(t, want)), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(path)
			if err != nil {
				t.Fatal(err)
			}
			// In JSON, absent and empty optional lists are the same. So the test compares the
			// encoded documents.
			if diff := cmp.Diff(encoded(t, want), encoded(t, got)); diff != "" {
				t.Errorf("read back differently (-written +read):\n%s", diff)
			}
		})
	}
}

// readBack saves a document and reads it again.
func readBack[T any](t *testing.T, want T, file string, save func(dir string, d T) error, read func(path string) (T, error)) {
	t.Helper()
	dir := t.TempDir()
	if err := save(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := read(filepath.Join(dir, file))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%s is read back differently, error %v (-written +read):\n%s", file, err, diff)
	}
}

func saveTables[T Tables](dir string, d T) error { return SaveTables(dir, d) }

func TestDocumentsAreReadBack(t *testing.T) {
	readBack(t, smallMatrix(), MatrixJSON, saveTables, ReadMatrix)
	readBack(t, smallClients(), ClientsJSON, saveTables, ReadClients)
	readBack(t, upstreamStory(), UpstreamJSON, saveTables, ReadUpstream)
	readBack(t, smallAblation(), AblationJSON, saveTables, ReadAblation)
	readBack(t, smallestForTests(), SmallestJSON, saveTables, ReadSmallest)
	readBack(t, smallConformance(), ConformanceFile, func(dir string, c ConformanceReport) error { return SaveConformance(dir, c, nil) }, ReadConformance)
}

func TestReadRefuses(t *testing.T) {
	good := encoded(t, small())
	for _, c := range []struct {
		name, document, want string
	}{
		{"nothing", "", "the file is empty"},
		{"blanks", " \n\t", "the file is empty"},
		{"no JSON", "<html>", "not a JSON document"},
		{"cut short", good[:len(good)/2], "not a JSON document"},
		{"something behind it", good + "{}", "not a JSON document"},
		{"another kind", `{"apiVersion":"v1","kind":"Pod"}`,
			`apiVersion "v1", kind "Pod": this skewproof reads "skewproof/v1alpha1", "RunReport" only`},
		{"another version", strings.Replace(good, APIVersion, "skewproof/v2", 1), `apiVersion "skewproof/v2"`},
		{"an unknown field", strings.Replace(good, `"metadata"`, `"colour": 1, "metadata"`, 1), `unknown field "colour": judge the saved history again`},
		{"a field of another type", strings.Replace(good, `"seed": 7`, `"seed": "7"`, 1), "metadata.seed"},
		{"an unknown outcome", strings.Replace(good, `"outcome": "fail"`, `"outcome": "maybe"`, 1), `verdict.outcome "maybe"`},
		{"a verdict that was altered", strings.Replace(good, `"outcome": "fail"`, `"outcome": "pass"`, 1), "contradicts the invariants"},
		{"a violation that was altered", strings.Replace(good, `"violations": 2`, `"violations": 0`, 1),
			`invariants[0] (NoFalseNotFound): verdict "fail" with 0 violations`},
		{"a verdict on an invariant that was altered", strings.Replace(good, `"verdict": "fail"`, `"verdict": "pass"`, 1),
			`verdict "pass" with 2 violations`},
		{"a pass on nothing", strings.Replace(good, `"checked": 3`, `"checked": 0`, 1), `(NoCrash): verdict "pass", and 0 observations judged`},
		{"a pass on a run that ended early", strings.Replace(good, `"complete": true`, `"complete": false`, 1),
			`(NoCrash): verdict "pass" on a run that ended early`},
		{"an unknown verdict", strings.Replace(good, `"verdict": "fail"`, `"verdict": "bad"`, 1),
			`invariants[0] (NoFalseNotFound): verdict "bad"`},
		{"an unknown grade", strings.Replace(good, `"grade": "core"`, `"grade": "gold"`, 1), `grade "gold"`},
		{"a step that ends before it starts", strings.Replace(good, `"endSeconds": 5.1`, `"endSeconds": 1`, 1), "steps[0]: from 5 s to 1 s"},
		{"a fault beyond all time", strings.Replace(good, `"endSeconds": 14,`, `"endSeconds": 1e300,`, 1), "is not a window of time"},
		{"buckets of no width", strings.Replace(good, `"bucketSeconds": 0.2`, `"bucketSeconds": 0`, 1), "timeline.bucketSeconds is 0"},
		{"a negative count", strings.Replace(good, `"success": 1`, `"success": -1`, 1), "a count that no run can have"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.document == good {
				t.Fatal("the document was not broken: this test would prove nothing")
			}
			path := filepath.Join(t.TempDir(), JSONFile)
			if err := os.WriteFile(path, []byte(c.document), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("Read gave the error %v, want one that names %s and says %q", err, path, c.want)
			}
		})
	}
}

// The verdict of a run follows from the verdicts on its invariants. Read refuses any other verdict,
// whatever the invariants' verdicts are.
func TestReadRefusesAnotherOutcome(t *testing.T) {
	judged := []invariant.Verdict{
		{Outcome: invariant.OutcomePass, Checked: 1},
		{Outcome: invariant.OutcomeFail, Checked: 1, Violations: 1},
		{Outcome: invariant.OutcomeInconclusive, Reason: "not exercised"},
		{Outcome: invariant.OutcomeInconclusive, Reason: "too little pressure", About: true},
		{Outcome: invariant.OutcomeInconclusive, Reason: "the machine did not keep up", Overloaded: 1},
	}
	refused := 0
	for _, core := range judged {
		for _, extended := range judged {
			for _, strict := range []bool{false, true} {
				core.Name, core.Grade, extended.Name, extended.Grade = "A", invariant.GradeCore, "B", invariant.GradeExtended
				r := reportOf(smallRun(), []invariant.Verdict{core, extended}, Options{Strict: strict})
				right := r.Verdict.Outcome
				for _, outcome := range []invariant.Outcome{invariant.OutcomePass, invariant.OutcomeFail, invariant.OutcomeInconclusive} {
					r.Verdict.Outcome = outcome
					_, err := runReports.decode(strings.NewReader(encoded(t, r)))
					if (err == nil) != (outcome == right) {
						t.Errorf("core %+v, extended %+v, strict %v: read as %s, which it is not (%s): %v", core, extended, strict, outcome, right, err)
					}
					if err != nil {
						refused++
					}
				}
			}
		}
	}
	if refused != 2*2*len(judged)*len(judged) {
		t.Errorf("%d outcomes were refused", refused)
	}
}

func TestReadMissingFile(t *testing.T) {
	if _, err := Read(filepath.Join(t.TempDir(), "nothing")); !os.IsNotExist(unwrapAll(err)) {
		t.Errorf("Read gave the error %v, want that the file does not exist", err)
	}
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || os.IsNotExist(err) {
			return err
		}
		err = inner.Unwrap()
	}
}

func TestDecodeBoundsLength(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("{"), blanks{})
	if _, err := runReports.decode(endless); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("Decode of an endless document gave the error %v", err)
	}
}

// blanks is a reader that never ends.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = ' '
	}
	return len(p), nil
}

// FuzzRead checks that every accepted document can be shown in every form and read back unchanged.
func FuzzRead(f *testing.F) {
	f.Add([]byte(encoded(f, small())))
	f.Add([]byte(`{"apiVersion":"skewproof/v1alpha1","kind":"RunReport"}`))
	f.Add([]byte(`{"apiVersion":"skewproof/v1alpha1","kind":"RunReport","verdict":{"outcome":"inconclusive"},"timeline":{"endSeconds":9,"bucketSeconds":1e-9,"lanes":[{"server":"a","buckets":[{"startSeconds":-3,"other":1}],"marks":[{"invariant":"X"}]}]},"counts":[{"server":"a","count":-1}]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		r, err := runReports.decode(bytes.NewReader(document))
		if err != nil {
			return
		}
		for name, write := range map[string]func(io.Writer, RunReport) error{
			"HTML": WriteHTML, "JUnit": WriteJUnit,
			"summary": func(w io.Writer, r RunReport) error { return WriteSummary(w, r, SummaryOptions{}) },
		} {
			var b bytes.Buffer
			if err := write(&b, r); err != nil {
				t.Errorf("%s of an accepted report: %v", name, err)
			}
			if name == "HTML" && (bytes.Contains(b.Bytes(), []byte("NaN")) || bytes.Contains(b.Bytes(), []byte("Inf\""))) &&
				!bytes.Contains(document, []byte("NaN")) && !bytes.Contains(document, []byte("Inf")) {
				t.Error("the page has a coordinate that is not a number")
			}
		}
		first := encoded(t, r)
		again, err := runReports.decode(strings.NewReader(first))
		if err != nil {
			t.Fatalf("an accepted report is refused when written again: %v", err)
		}
		if encoded(t, again) != first {
			t.Error("a report changes when it is read and written again")
		}
	})
}
