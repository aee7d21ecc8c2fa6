package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/sim/recorded"
)

// A version treats every field as it does itself, whichever of two servers is asked.
func TestNoFieldDiffersBetweenServersOfOneVersion(t *testing.T) {
	needsCluster(t)
	r := run(t, "plan", "--record-fields", "--from", "v1.37.1", "--to", "v1.37.1", "--resources", "statefulsets,persistentvolumes,services,jobs",
		"--documents", t.TempDir())
	_, document, _ := strings.Cut(r.output, "\n{\n")
	var table recorded.FieldTable
	if err := json.Unmarshal([]byte("{"+document), &table); r.code != pass || err != nil {
		t.Fatalf("code %d, error %v:\n%s", r.code, err, r.output)
	}
	if c := table.Counts; len(table.Fields) > 0 || c.Kinds != 4 || c.Judged < 200 || c.RefusedAlike > c.Judged/8 {
		t.Errorf("counts %+v, fields %+v", c, table.Fields)
	}
}

// A name that is no resource of both versions is an error, and no table without differences.
func TestFieldsOfNoResource(t *testing.T) {
	needsCluster(t)
	r := run(t, "plan", "--record-fields", "--from", "v1.37.1", "--to", "v1.37.1", "--resources", "statefulsets,nonsense", "--documents", t.TempDir())
	if r.code != notRun || !strings.Contains(r.output, `compare the fields of "nonsense"`) {
		t.Errorf("code %d:\n%s", r.code, r.output)
	}
}
