package e2e

import (
	"testing"

	"github.com/skewproof/skewproof/sim/recorded"
)

// A version treats every field as it does itself, whichever of two servers is asked.
func TestNoFieldDiffersBetweenServersOfOneVersion(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	const version = "v1.37.1"
	dir := t.TempDir()
	exits(t, run(t, "plan", "--record-fields", "--from", version, "--to", version, "--documents", dir), pass)
	table, err := recorded.Fields(version, version, dir)
	if err != nil {
		t.Fatal(err)
	}
	if c := table.Counts; len(table.Fields) > 0 || c.Kinds < 40 || c.Judged < 2000 || c.RefusedAlike > c.Judged/8 {
		t.Errorf("counts %+v, fields %+v", c, table.Fields)
	}
}
