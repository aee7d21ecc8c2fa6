package e2e

import (
	"path/filepath"
	"testing"

	"github.com/skewproof/skewproof/reports"
	"github.com/skewproof/skewproof/sim/parity"
)

// agreesWithTheSimulator carries out in the simulator the plan that was just carried out on real
// processes, and compares the verdicts. A disagreement shows that the simulator is wrong, unless
// the reason is known (sim/parity/known.json).
func agreesWithTheSimulator(t *testing.T, local reports.RunReport, name string, flags ...string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sim")
	r := run(t, append([]string{"run", name, "--backend", "sim", "--out", dir}, flags...)...)
	simulated, err := reports.Read(filepath.Join(dir, reports.JSONFile))
	if err != nil {
		t.Fatalf("the simulated run left no report: %v; it said:\n%s", err, r.output)
	}
	disagreements, err := parity.Compare(local, simulated)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range disagreements {
		if why, ok := parity.Explain(d); ok {
			t.Logf("%s: %s", d, why)
			continue
		}
		if v := verdict(t, local, d.Invariant); ofNoProxy(v) {
			t.Logf("%s: findings %v, which no proxy can prevent", d, v.Findings)
			continue
		}
		t.Errorf("%s", d)
		for _, e := range verdict(t, simulated, d.Invariant).Evidence {
			t.Logf("in the simulator, %d times: %s", e.Count, e.Sentence)
		}
		for _, e := range verdict(t, local, d.Invariant).Evidence {
			t.Logf("on real processes, %d times: %s", e.Count, e.Sentence)
		}
	}
}
