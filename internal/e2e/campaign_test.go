package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// Three schedules are carried out on real processes of one cluster, and are judged.
func TestCampaignOnRealProcesses(t *testing.T) {
	needsCluster(t)
	dir := filepath.Join(t.TempDir(), "campaign")
	r := run(t, "explore", "--backend", "local", "--seeds", "3", "--candidates", "1", "--first", "97", "--repeats", "0", "--out", dir)
	t.Logf("exit code %d\n%s", r.code, r.output)
	c, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		t.Fatal(err)
	}
	if c.Schedules != 3 || !c.Complete || len(c.Troubles) > 0 {
		t.Errorf("%d schedules were carried out, complete: %t, troubles: %+v", c.Schedules, c.Complete, c.Troubles)
	}
	if len(c.Real.Sessions) != 1 {
		t.Errorf("the clusters are %+v: a cluster was not used again", c.Real.Sessions)
	}
	if c.Real.PassedOn == 0 || c.Real.Operations < 1000 {
		t.Errorf("%d requests, %d of them passed on to a peer", c.Real.Operations, c.Real.PassedOn)
	}
	if !slices.ContainsFunc(c.Real.Coverage, func(cell reports.CoverageCell) bool { return cell.Fault != "none" }) ||
		!slices.ContainsFunc(c.Real.Coverage, func(cell reports.CoverageCell) bool { return cell.Transition != "none" }) {
		t.Errorf("no request met a fault, or none followed a change: %+v", c.Real.Coverage)
	}
	for _, f := range c.Findings {
		if f.Finding == 0 {
			t.Logf("NEW: %s: %s", f.ViolationKind, f.Sentence)
		}
	}
	if !strings.Contains(r.output, "3 of 3 schedules") {
		t.Error("the progress does not say how far it is")
	}
}
