package run

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/engine"
	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
	"github.com/skewproof/skewproof/reports"
)

// runOf is the directory of a run with that history.
func runOf(t *testing.T, lines ...string) Dir {
	t.Helper()
	dir := Dir(t.TempDir())
	if err := os.WriteFile(dir.History(), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

var silent = Console{Out: io.Discard, Progress: io.Discard}

const recordOfARun = `{"run":{"schema":"skewproof/history/v1alpha1","scenario":"quiet","servers":[{"name":"a","version":"v1.37.1"}]}}`

// In this test, the sandboxed half was killed, or had no space left, in the middle of a line.
func TestARunThatWasKilledIsJudgedByWhatItRecorded(t *testing.T) {
	dir := runOf(t, recordOfARun, `{"lifecycle":{"server":"a","incarnation":1,"sta`)
	report, err := dir.judge(nil, Judging{}, silent, dir.cutUnless(false))
	if err == nil || report.Verdict.Outcome != "" || KindOf(err) != KindNotRun || !strings.Contains(err.Error(), "not carried out to its end") || strings.Contains(err.Error(), "read history") {
		t.Errorf("it is judged with %v", err)
	}
	if _, err := os.Stat(dir.File("report.json")); err != nil {
		t.Errorf("no report: %v", err)
	}
}

func TestARunThatCannotBeJudgedSaysWhy(t *testing.T) {
	dir := runOf(t, recordOfARun, "hello", "")
	_, err := dir.judge(nil, Judging{}, silent, dir.cutUnless(false))
	for _, want := range []string{"not carried out to its end", "line 2: not a history record"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is judged with %v, want %q in it", err, want)
		}
	}
}

// Failures of servers after the loss of etcd are not their fault, even if the run ends very soon
// after it.
func TestTheLossOfEtcdIsRecorded(t *testing.T) {
	var file strings.Builder
	recorder := history.NewRecorder(&file, history.Run{}, nil)
	why := errors.New("etcd ended")
	if err := recordLoss(recorder, fault.Etcd, why); !errors.Is(err, why) {
		t.Errorf("the run is over because of %v", err)
	}
	if err := recorder.Close(why); err != nil {
		t.Fatal(err)
	}
	h, err := history.Read(strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Faults) != 1 || h.Faults[0].To != fault.Etcd || !h.Faults[0].Blocks || !h.Faults[0].Effective() || h.Faults[0].End != history.Forever {
		t.Errorf("faults %+v", h.Faults)
	}
}

func TestARunWithoutAHistoryIsNotJudged(t *testing.T) {
	none, empty := Dir(t.TempDir()), runOf(t)
	for _, dir := range []Dir{none, empty} { // what a killed process recorded may not have reached the file
		if _, err := dir.judge(nil, Judging{}, silent, dir.cutUnless(false)); err == nil || !strings.Contains(err.Error(), "did not get as far as a history") {
			t.Errorf("it is judged with %v", err)
		}
		if _, err := dir.judge(nil, Judging{}, silent, engine.ErrStopped); !errors.Is(err, errInterrupted) || KindOf(err) != KindNotRun {
			t.Errorf("stopped, it is judged with %v", err)
		}
	}
}

// A run that was stopped has a verdict on what it recorded, whether anything was violated or not.
// The same holds if its history has no end, because the process that wrote it had to be killed.
func TestAStoppedRunIsJudgedByWhatItRecorded(t *testing.T) {
	const crash = `{"lifecycle":{"server":"a","incarnation":1,"state":"crashed","at":5}}`
	for name, c := range map[string]struct {
		lines    []string
		violated bool
	}{
		"nothing violated":          {[]string{`{"end":{"at":9,"error":"step 1, sweep: the run was stopped","complete":true}}`}, false},
		"violated":                  {[]string{crash, `{"end":{"at":9,"error":"step 1, sweep: the run was stopped","complete":true}}`}, true},
		"nothing violated, and cut": {[]string{`{"lifecycle":{"server":"a","incar`}, false},
		"violated, and cut":         {[]string{crash, `{"lifecycle":{"server":"a","incar`}, true},
	} {
		dir := runOf(t, append([]string{recordOfARun}, c.lines...)...)
		var said strings.Builder
		report, err := dir.judge(nil, Judging{}, Console{Out: io.Discard, Progress: &said}, engine.ErrStopped)
		if s := report.Standing(); err != nil || s.Violated != c.violated || !s.Undecided {
			t.Errorf("%s: %+v, error %v", name, s, err)
		}
		if want := "skewproof: the run was stopped; the report covers what was recorded until then, and is no pass\n"; said.String() != want {
			t.Errorf("%s: it says %q", name, &said)
		}
		if _, err := reports.Read(dir.File(reports.JSONFile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
