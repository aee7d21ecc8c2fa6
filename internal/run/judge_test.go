package run

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/fault"
	"github.com/skewproof/skewproof/internal/history"
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
	dir := Dir(t.TempDir())
	if _, err := dir.judge(nil, Judging{}, silent, dir.cutUnless(false)); err == nil || !strings.Contains(err.Error(), "did not get as far as a history") {
		t.Errorf("it is judged with %v", err)
	}
}
