package reports

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skewproof/skewproof/internal/golden"
)

// upstreamStory has a spec of every class.
func upstreamStory() UpstreamTests {
	u := UpstreamTests{
		Metadata: UpstreamMetadata{
			Made: Made{time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC), 321, "v0.1.0"}, Path: PathOld,
			Subject: "builtin",
			From:    "v1.36.3", To: "v1.37.1", Tests: "v1.37.1", Focus: "Config|<b>",
		},
		Runs: []UpstreamRun{
			{Path: PathDirect, Subject: "none", Directory: "direct", DurationSeconds: 150},
			{Path: PathOld, Subject: "builtin", Directory: "old", Violated: []string{"NoCrash"}, DurationSeconds: 170},
		},
		Specs: []UpstreamSpec{
			{Name: "fails", Outcome: SpecFailed, Direct: SpecPassed, Message: "got 404 <script>\nat x.go:7", DurationSeconds: 3},
			{Name: "fails, unknown", Outcome: SpecFailed, Direct: SpecNotRun, Message: "no luck"},
			{Name: "fails everywhere", Outcome: SpecFailed, Direct: SpecFailed, Message: "no node", DirectMessage: "no node"},
			{Name: "fails as expected", Outcome: SpecFailed, Direct: SpecPassed, Expected: "not merged", Message: "missing"},
			{Name: "gains", Outcome: SpecPassed, Direct: SpecFailed, DirectMessage: "not served"},
			{Name: "is stale", Outcome: SpecPassed, Direct: SpecPassed, Expected: "not merged"},
			{Name: "is not run", Outcome: SpecNotRun, Direct: SpecPassed, Message: "interrupted"},
			{Name: "passes", Outcome: SpecPassed, Direct: SpecPassed},
			{Name: "skips itself", Outcome: SpecSkipped, Direct: SpecSkipped, Message: "needs a node"},
		},
		Left:       []UpstreamLeft{{Reason: "the webhook runs in a pod", Specs: 25}},
		Repetition: Repetition{Reproduce: "skewproof upstream-e2e --path old"},
	}
	u.Conclude()
	return u
}

func TestUpstreamGolden(t *testing.T) {
	holdTables(t, upstreamStory())
	content, err := upstreamJUnit(upstreamStory()).Encode()
	if err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/upstream-e2e.xml", string(content))
}

// A spec of Kubernetes prints all API groups, in one line, when it skips itself.
func TestAReasonIsShort(t *testing.T) {
	for message, want := range map[string]string{
		"short": "short", "two\nlines": "two", strings.Repeat("x", 300): strings.Repeat("x", 300), strings.Repeat("x", 301): strings.Repeat("x", 300) + "…",
		strings.Repeat("x", 299) + "é": strings.Repeat("x", 299) + "…",
	} {
		if got := (UpstreamSpec{Class: ClassSkipped, Message: message}).Why(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUpstreamConclusions(t *testing.T) {
	passed, failed := UpstreamSpec{Name: "p", Outcome: SpecPassed, Direct: SpecPassed},
		UpstreamSpec{Name: "q", Outcome: SpecFailed, Direct: SpecPassed}
	both := UpstreamSpec{Name: "r", Outcome: SpecFailed, Direct: SpecFailed}
	other := UpstreamSpec{Name: "s", Outcome: SpecFailed, Direct: SpecFailed}
	for name, tc := range map[string]struct {
		path  string
		runs  []UpstreamRun
		specs []UpstreamSpec
		want  Result
	}{
		"all passed":         {specs: []UpstreamSpec{passed}, want: ResultPassed},
		"one failed":         {specs: []UpstreamSpec{passed, failed}, want: ResultFailed},
		"one fails directly": {specs: []UpstreamSpec{passed, both}, want: ResultPassed},
		"most fail directly": {specs: []UpstreamSpec{passed, both, other}, want: ResultInconclusive},
		"nothing was chosen": {want: ResultInconclusive},
		"all skipped":        {specs: []UpstreamSpec{{Name: "p", Outcome: SpecSkipped}}, want: ResultInconclusive},
		"one not run":        {specs: []UpstreamSpec{passed, {Name: "q", Outcome: SpecNotRun}}, want: ResultInconclusive},
		"the run was cut short": {runs: []UpstreamRun{{Path: PathOld, Trouble: "interrupted"}}, specs: []UpstreamSpec{passed},
			want: ResultInconclusive},
		"the direct run was cut short": {runs: []UpstreamRun{{Path: PathDirect, Trouble: "interrupted"}}, specs: []UpstreamSpec{passed},
			want: ResultInconclusive},
		"cut short, and one failed": {runs: []UpstreamRun{{Path: PathOld, Trouble: "interrupted"}}, specs: []UpstreamSpec{failed},
			want: ResultFailed},
		"an invariant was violated": {runs: []UpstreamRun{{Path: PathOld, Violated: []string{"NoCrash"}}}, specs: []UpstreamSpec{passed},
			want: ResultFailed},
		"one was violated without a proxy": {runs: []UpstreamRun{{Path: PathDirect, Violated: []string{"NoCrash"}}},
			specs: []UpstreamSpec{passed}, want: ResultPassed},
		"on the direct path, one failed": {path: PathDirect,
			specs: []UpstreamSpec{{Name: "p", Outcome: SpecPassed}, {Name: "q", Outcome: SpecFailed}}, want: ResultPassed},
		"on the direct path, most failed": {path: PathDirect, specs: []UpstreamSpec{{Name: "q", Outcome: SpecFailed}},
			want: ResultInconclusive},
		"passed only by way of the proxy": {specs: []UpstreamSpec{{Name: "q", Outcome: SpecPassed, Direct: SpecFailed}}, want: ResultPassed},
		"passed, though expected to fail": {specs: []UpstreamSpec{{Name: "q", Outcome: SpecPassed, Direct: SpecPassed, Expected: "x"}},
			want: ResultPassed},
		"failed, and not known on the path": {specs: []UpstreamSpec{passed, {Name: "q", Outcome: SpecFailed, Direct: SpecSkipped}},
			want: ResultInconclusive},
	} {
		u := UpstreamTests{Metadata: UpstreamMetadata{Path: PathOld}, Runs: tc.runs, Specs: tc.specs}
		if tc.path != "" {
			u.Metadata.Path = tc.path
		}
		u.Conclude()
		if u.Result != tc.want {
			t.Errorf("%s: %s (%s), want %s", name, u.Result, u.Sentence, tc.want)
		}
		suite := upstreamJUnit(u)
		red := false
		for _, c := range suite.Cases {
			red = red || c.Failure != nil || c.Error != nil
		}
		if red != (u.Result != ResultPassed) {
			t.Errorf("%s: %s, and a red case in JUnit: %t", name, u.Result, red)
		}
	}
}

func TestSavedUpstreamResultsAreReadAndAltered(t *testing.T) {
	dir := t.TempDir()
	if err := SaveTables(dir, upstreamStory()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"upstream-e2e.html", "upstream-e2e.txt", "upstream-e2e.md", UpstreamJSON, JUnitFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(dir, UpstreamJSON)
	if _, err := ReadUpstream(path); err != nil {
		t.Fatal(err)
	}
	for want, alter := range map[string]func(*UpstreamTests){
		"its specs make it":           func(u *UpstreamTests) { u.Result = ResultPassed },
		"its outcomes make it":        func(u *UpstreamTests) { u.Specs[0].Class = ClassPassed },
		"want passed, failed":         func(u *UpstreamTests) { u.Specs[0].Outcome = "great" },
		"is not after the one before": func(u *UpstreamTests) { u.Specs[1].Name = u.Specs[0].Name },
		"is not direct, old":          func(u *UpstreamTests) { u.Metadata.Path = "sideways" },
		"this skewproof reads":        func(u *UpstreamTests) { u.Kind = MatrixKind },
	} {
		u := upstreamStory()
		alter(&u)
		content, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadUpstream(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
