package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/run"
	"github.com/skewproof/skewproof/reports"
)

// passedOff writes a simulated run of quiet to base as if it were a run of real processes. It is
// labelled builtin, whatever its subject was.
func passedOff(t *testing.T, base, subject string) {
	t.Helper()
	dir := filepath.Join(base, "quiet-builtin-local")
	if _, err := call(t, "run", "quiet", "--backend", "sim", "--subject", subject, "--qps", rate, "--out", dir); exitCodeOf(err) > exitInconclusive {
		t.Fatal(err)
	}
	path := run.Dir(dir).History()
	history, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := bytes.Cut(history, []byte("\n"))
	head = bytes.Replace(head, []byte(`"backend":"sim"`), []byte(`"backend":"local"`), 1)
	head = bytes.Replace(head, []byte(`"subject":"`+subject+`"`), []byte(`"subject":"builtin"`), 1)
	if err := os.WriteFile(path, bytes.Join([][]byte{head, rest}, []byte("\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "judge", dir); exitCodeOf(err) > exitInconclusive {
		t.Fatal(err)
	}
}

// Existing real runs are compared and not repeated. In this test, no real process could be started.
func TestParityOfRunsThatAreThere(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	passedOff(t, base, "builtin")
	dir := filepath.Join(t.TempDir(), "out")
	out, err := call(t, "parity", "quiet", "--subject", "builtin", "--local", base, "--out", dir)
	if exitCodeOf(err) != exitPass || !strings.Contains(out, "Every disagreement is known.") || !strings.Contains(out, " of ") {
		t.Errorf("%v, it said:\n%s", err, out)
	}
	if !strings.Contains(out, filepath.Join(dir, reports.ParityHTML)) {
		t.Errorf("it does not name its page:\n%s", out)
	}
	for _, name := range []string{reports.ParityHTML, reports.ParityText, reports.JUnitFile} {
		rendersAgain(t, dir, name, exitPass)
	}
	table, err := reports.ReadParity(filepath.Join(dir, reports.ParityJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{table.Pairs[0].LocalPage(), table.Pairs[0].SimPage()} {
		if _, err := os.Stat(filepath.Join(dir, page)); page == "" || err != nil {
			t.Errorf("a pair leads to no report: %v", err)
		}
	}
}

// If a pair cannot be compared, the comparison has the pairs before it. It does not pass.
func TestParityThatEndedEarlySaysSo(t *testing.T) {
	t.Parallel()
	base, dir := t.TempDir(), filepath.Join(t.TempDir(), "out")
	passedOff(t, base, "builtin")
	if err := os.CopyFS(filepath.Join(base, "quiet-reference-local"), os.DirFS(filepath.Join(base, "quiet-builtin-local"))); err != nil {
		t.Fatal(err)
	}
	out, err := call(t, "parity", "quiet", "--subject", "builtin,reference", "--local", base, "--out", dir)
	if exitCodeOf(err) != exitNotRun || !strings.Contains(err.Error(), "compare two runs of one plan") || !strings.Contains(out, "1 of 2 were compared.") {
		t.Fatalf("exit code %d, %v; it said:\n%s", exitCodeOf(err), err, out)
	}
	table, err := reports.ReadParity(filepath.Join(dir, reports.ParityJSON))
	if err != nil || table.Result != reports.ResultInconclusive || !strings.Contains(table.Pairs[1].NotCompared, "compare two runs of one plan") {
		t.Errorf("error %v, %+v", err, table)
	}
	rendersAgain(t, dir, reports.ParityHTML, exitNotRun)
}

// If a run without a proxy is labelled as one with a proxy, it disagrees with the simulator.
// Nothing explains the disagreement.
func TestParityFindsWhatDisagrees(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	passedOff(t, base, "none")
	dir := filepath.Join(t.TempDir(), "out")
	out, err := call(t, "parity", "quiet", "--subject", "builtin", "--local", base, "--out", dir, "--causes")
	if exitCodeOf(err) != exitFail {
		t.Errorf("%v, want exit code %d", err, exitFail)
	}
	for _, want := range []string{"NOT KNOWN", "disagreements are not known", "only on real processes: NoFalseNotFound"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	rendersAgain(t, dir, reports.ParityHTML, exitFail)
}

// All these errors are found before anything starts. Otherwise each command would take minutes, or
// would do nothing and report success.
func TestParityRefusesWrongUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, c := range []struct {
		words []string
		code  int
		says  string
	}{
		{[]string{"nosuch"}, exitUsage, "no scenario"},
		{[]string{"quiet", "many-peers"}, exitUsage, "runs on sim only"},
		{[]string{"quiet", "--subject", ""}, exitUsage, "--subject names none"},
		{[]string{"quiet", "--subject", "builtin,alpha"}, exitUsage, `"alpha"`},
		{[]string{"quiet", "quiet"}, exitUsage, "named twice"},
		{[]string{"quiet", "--servers", "0"}, exitUsage, "--servers 0"},
		{[]string{"quiet", "--qps", "0"}, exitUsage, "--qps 0"},
		{[]string{"quiet", "--backend", "sim"}, exitUsage, "unknown flag"},
		{[]string{"quiet", "--local", "nowhere"}, exitNotRun, "--local nowhere"},
		{[]string{"quiet", "--local", "file"}, exitNotRun, "--local file"},
		{[]string{"quiet", "--local", empty}, exitNotRun, "none of those that are to be compared is there, such as quiet-builtin-local"},
		{[]string{"quiet", "--out", "."}, exitUsage, "not empty"},
	} {
		_, err := call(t, append([]string{"parity"}, c.words...)...)
		if code := exitCodeOf(err); code != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: exit code %d, %v; want %d and %q", c.words, code, err, c.code, c.says)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 1 {
		t.Errorf("they left %v, error %v", left, err)
	}
}

// The flags of 'skewproof run' mean the same in parity and in replay.
func TestFlagsMeanTheSameEverywhere(t *testing.T) {
	for _, other := range []string{"parity", "replay"} {
		for _, name := range []string{"qps", "etcd", "binary"} {
			run, _, _ := newRoot().Find([]string{"run"})
			command, _, _ := newRoot().Find([]string{other})
			mine, theirs := command.Flag(name), run.Flag(name)
			usage, _, _ := strings.Cut(theirs.Usage, "; with --backend existing") // the other commands do not have this part
			if mine == nil || mine.DefValue != theirs.DefValue || !strings.HasPrefix(mine.Usage, usage) {
				t.Errorf("--%s of %s is %+v, that of run %+v", name, other, mine, theirs)
			}
		}
	}
}
