package reports

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
)

func smallMatrix() VersionMatrix {
	invariants := []MatrixInvariant{
		{"NoFalseNotFound", invariant.GradeCore, "No request is told that a resource does not exist."},
		{"Available", invariant.GradeExtended, "No request fails."},
	}
	crashed, skipped := ProfileResult{Result: ResultInconclusive, Reason: "exit code 3: a crashed"},
		ProfileResult{Result: ResultSkipped, Reason: "no such subject"}
	passed, failed := ProfileResult{Result: ResultPassed},
		ProfileResult{Result: ResultFailed, Reason: "b answered 404.", Violated: []string{"NoFalseNotFound"}, New: 3, Findings: []int{2}}
	m := VersionMatrix{
		TypeMeta: OfKind(MatrixKind), Invariants: invariants,
		Metadata: MatrixMetadata{Made: Made{time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC), 320, "v0.1.0"},
			Backend: "local", Complete: true, Tested: testedForTests()},
		Pairs: []VersionPair{{From: "v1.35.4", To: "v1.36.3"}, {From: "v1.34.4", To: "v1.37.1", Note: "mixed by mistake"}},
		Cells: []MatrixCell{
			{Scenario: "quiet", Subject: "builtin", Core: failed, Extended: passed, Verdicts: []invariant.Outcome{"fail", "pass"},
				DurationSeconds: 80, Directory: "1-quiet-builtin", Reproduce: "skewproof run quiet"},
			{Scenario: "quiet", Subject: "none", MustFail: true, Core: failed, Extended: passed,
				Verdicts: []invariant.Outcome{"fail", "inconclusive"}, DurationSeconds: 80, Directory: "1-quiet-none"},
			{Pair: 1, Scenario: "quiet", Subject: "builtin", Core: crashed, Extended: crashed, Trouble: "exit code 3: a crashed\nand said this",
				DurationSeconds: 80, Directory: "2-quiet-builtin"},
			{Pair: 1, Scenario: "quiet", Subject: "alpha", Core: skipped, Extended: skipped},
		},
		Repetition: Repetition{"skewproof matrix", []string{"2 CPUs"}},
	}
	m.Result, m.Sentence = m.conclusion()
	return m
}

func renderMatrix(t *testing.T, m VersionMatrix) *html.Node {
	t.Helper()
	return parsed(t, asHTML, m)
}

func TestMatrixGolden(t *testing.T) {
	holdTables(t, smallMatrix())
	golden.Hold(t, "testdata/matrix-schema.txt", strings.Join(schema(reflect.TypeFor[VersionMatrix](), ""), "\n")+"\n")
}

// The negative control must fail. A matrix in which it does not fail proves nothing.
func TestMatrixConclusion(t *testing.T) {
	cell := func(subject string, r Result) MatrixCell {
		return MatrixCell{Subject: subject, MustFail: subject == "none", Core: ProfileResult{Result: r}}
	}
	for name, c := range map[string]struct {
		cells []MatrixCell
		want  Result
	}{
		"as it should be":    {[]MatrixCell{cell("reference", ResultPassed), cell("none", ResultFailed)}, ResultPassed},
		"a violation":        {[]MatrixCell{cell("builtin", ResultFailed), cell("none", ResultFailed)}, ResultFailed},
		"a known violation":  {[]MatrixCell{cell("builtin", ResultKnown), cell("none", ResultFailed)}, ResultKnown},
		"known, and blind":   {[]MatrixCell{cell("builtin", ResultKnown), cell("none", ResultPassed)}, ResultInconclusive},
		"a blind control":    {[]MatrixCell{cell("reference", ResultPassed), cell("none", ResultPassed)}, ResultInconclusive},
		"a run for nothing":  {[]MatrixCell{cell("reference", ResultPassed), cell("builtin", ResultInconclusive)}, ResultInconclusive},
		"nothing to ask for": {[]MatrixCell{cell("builtin", ResultSkipped)}, ResultInconclusive},
		"something left out": {[]MatrixCell{cell("builtin", ResultSkipped), cell("reference", ResultPassed), cell("none", ResultFailed)},
			ResultPassed},
		"no control":         {[]MatrixCell{cell("reference", ResultPassed)}, ResultInconclusive},
		"control not run":    {[]MatrixCell{cell("reference", ResultPassed), cell("none", ResultSkipped)}, ResultInconclusive},
		"no need of control": {[]MatrixCell{cell("builtin", ResultFailed)}, ResultFailed},
		"none need not fail": {[]MatrixCell{cell("reference", ResultPassed), {Subject: "none", Core: ProfileResult{Result: ResultPassed}}},
			ResultInconclusive},
		"nothing was to be":   {nil, ResultInconclusive},
		"the control alone":   {[]MatrixCell{cell("none", ResultFailed)}, ResultInconclusive},
		"control, rest out":   {[]MatrixCell{cell("builtin", ResultSkipped), cell("none", ResultFailed)}, ResultInconclusive},
		"control that stayed": {[]MatrixCell{cell("none", ResultInconclusive)}, ResultInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMatrix(MatrixMetadata{Complete: true}, []VersionPair{{}}, c.cells)
			if m.Result != c.want {
				t.Errorf("%s (%s), want %s", m.Result, m.Sentence, c.want)
			}
			controlled := slices.ContainsFunc(c.cells, func(c MatrixCell) bool { return c.MustFail && c.Core.Result != ResultSkipped })
			if told := strings.Contains(m.Sentence, "nothing shows that they could have failed"); told == controlled {
				t.Errorf("it says %q", m.Sentence)
			}
			m = NewMatrix(MatrixMetadata{}, []VersionPair{{}}, c.cells)
			if m.Result == ResultPassed {
				t.Error("a matrix that was ended early passes")
			}
		})
	}
}

// A result cannot be changed by editing one line. The error names a document that is not a matrix.
func TestReadMatrixRefuses(t *testing.T) {
	var b bytes.Buffer
	if err := writeIndented(&b, smallMatrix()); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for name, c := range map[string]struct{ document, want string }{
		"nothing":           {" \n", "the file is empty"},
		"half of it":        {good[:len(good)/2], "not a JSON document"},
		"another kind":      {`{"apiVersion": "v1", "kind": "Pod"}`, `apiVersion "v1", kind "Pod"`},
		"another version":   {strings.Replace(good, APIVersion, "skewproof/v9", 1), `apiVersion "skewproof/v9"`},
		"an unknown field":  {strings.Replace(good, `"reproduce"`, `"colour": "red", "reproduce"`, 1), "colour"},
		"an altered result": {strings.Replace(good, `"result": "failed"`, `"result": "passed"`, 1), "the file was altered"},
		"an altered cell": {strings.Replace(good, `"result": "failed",
        "reason"`, `"result": "passed", "reason"`, 1), "the file was altered"},
		"an altered cell that decides nothing": {strings.Replace(good, `"extended": {
        "result": "inconclusive"`, `"extended": {
        "result": "passed"`, 1), `cells[2] is passed, with the reason "exit code 3: a crashed" why it is not`},
		"an unknown verdict": {strings.Replace(good, `"inconclusive"
      ]`, `"maybe"]`, 1), `verdict "maybe"`},
		"an unknown result": {strings.Replace(good, `"result": "skipped"`, `"result": "maybe"`, 1), `result "maybe"`},
		"no such pair":      {strings.Replace(good, `"pair": 1`, `"pair": 7`, 1), "of no pair"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.document == good {
				t.Fatal("the document was not broken: this test would prove nothing")
			}
			if _, err := matrices.decode(strings.NewReader(c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}
