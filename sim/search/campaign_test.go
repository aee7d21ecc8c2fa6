package search

import (
	"path/filepath"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

func TestACampaignIsReadBack(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: 20, CauseRuns: 60, Version: "v1", Machine: "one"})
	dir := t.TempDir()
	if err := reports.WriteCampaign(dir, c); err != nil {
		t.Fatal(err)
	}
	again, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Findings { // the repro file is the campaign's own
		r, err := ReadRepro(filepath.Join(dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := r.Encode(); err != nil || string(body) != string(f.Repro) {
			t.Errorf("%s is\n%s\nwant\n%s\nerror %v", f.File, body, f.Repro, err)
		}
	}
	if a, b := encoded(t, c), encoded(t, again); a != b {
		t.Errorf("written\n%s\nread back\n%s", a, b)
	}
}

// A report that does not mention untested invariants would look like a proof. The simulator has no
// OpenAPI documents.
func TestACampaignSaysWhatItExercised(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{Seeds: 12, ShrinkRuns: -1})
	for _, inv := range c.Invariants {
		switch {
		case inv.Exercised > c.Schedules, inv.Violated > inv.Exercised:
			t.Errorf("%s: %d of %d histories exercised it, %d violated it", inv.Name, inv.Exercised, c.Schedules, inv.Violated)
		case inv.Name == "NoFalseNotFound" && inv.Exercised == 0, inv.Name == "OpenAPIDescribes" && inv.Exercised > 0:
			t.Errorf("%s: exercised in %d histories", inv.Name, inv.Exercised)
		}
	}
}

func TestGrowthLeadsToTheWhole(t *testing.T) {
	c := explored(t, specOf("upstream-1.37", 3), Options{First: 7, Seeds: 53, ShrinkRuns: -1})
	if last := c.Growth[len(c.Growth)-1]; last.Schedules != 53 || last.Kinds != len(c.Findings) || len(c.Growth) != 7 {
		t.Errorf("it grew to %+v, and %d kinds were found", c.Growth, len(c.Findings))
	}
}
