package e2e

import (
	"path/filepath"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// The test runs two operations of the table of clients: kubectl, and the JavaScript client if the
// machine has Node.js. Both must work through the reference, and both must fail without a proxy.
func TestTableOfClients(t *testing.T) {
	onlyWithAll(t)
	needsCluster(t)
	dir := filepath.Join(t.TempDir(), "clients")
	r := run(t, "clients", "--clients", "kubectl@v1.37.1,client-node@v1.4.0", "--focus", "^(get|CustomObjectsApi)$", "--out", dir)
	t.Logf("exit code %d\n%s", r.code, r.output)
	table, err := reports.ReadClients(filepath.Join(dir, reports.ClientsJSON))
	if err != nil {
		t.Fatal(err)
	}
	exits(t, r, pass)
	for _, left := range table.Metadata.LeftOut {
		t.Logf("left out: %s", left)
	}
	if want := 2 - len(table.Metadata.LeftOut); len(table.Clients) != want || len(table.Operations) != want {
		t.Errorf("%d clients and %d operations, want %d of each", len(table.Clients), len(table.Operations), want)
	}
	works := map[string]reports.Did{
		reports.ClientDirect: reports.DidWork, "none": reports.DidNotWork, "builtin": reports.DidWork, "reference": reports.DidWork,
	}
	for _, cell := range table.Cells {
		if want := works[cell.Path]; cell.Did != want {
			t.Errorf("%s, %s, %s: %s (%s), want %s", cell.Path, cell.Operation, cell.Client, cell.Did, cell.Reason, want)
		}
	}
	if want := len(works) * len(table.Operations); len(table.Cells) != want {
		t.Errorf("%d cells, want %d", len(table.Cells), want)
	}
}
