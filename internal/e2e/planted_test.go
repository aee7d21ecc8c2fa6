package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/reports"
)

// plantedSeeds is how many schedules may look for a planted defect. 0 skips the test.
var plantedSeeds = flag.Int("planted", 0, "look for each defect that is planted in a real sidecar with up to so many real schedules (an hour or so)")

// plantedPage is what the last run of the test came to.
const plantedPage = "../../docs/planted.md"

// A campaign on real servers finds each defect that is planted in a real sidecar. The test writes
// after how many schedules, once all were looked for.
func TestPlantedDefectsInARealSidecar(t *testing.T) {
	if *plantedSeeds == 0 {
		t.Skip("takes an hour: 'make planted' runs it")
	}
	needsCluster(t)
	var rows []string
	for _, name := range plantedNames(t) {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "skewproof")
			build := exec.Command("go", "build", "-tags", "planted", "-ldflags", "-X github.com/skewproof/skewproof/proxy/sidecar.planted="+name, "-o", program, "../../cmd/skewproof")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build a sidecar with a defect: %v\n%s", err, out)
			}
			dir := filepath.Join(t.TempDir(), "campaign")
			var output bytes.Buffer
			explore := command(t, &output, "explore", "--backend", "local", "--subject", "reference", "--seeds", strconv.Itoa(*plantedSeeds), "--until-new",
				"--repeats", "0", "--out", dir)
			explore.Path = program
			code := exitCode(t, explore.Run())
			c, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
			if err != nil {
				t.Fatalf("exit code %d: %v\n%s", code, err, &output)
			}
			row := fmt.Sprintf("| %s | not in %d | |", name, c.Schedules)
			if i := slices.IndexFunc(c.Findings, func(f reports.CampaignFinding) bool { return f.Finding == 0 }); i >= 0 {
				row = fmt.Sprintf("| %s | %d | %s |", name, c.Schedules, c.Findings[i].Invariant)
			} else {
				t.Errorf("%d schedules did not find it\n%s", c.Schedules, &output)
			}
			t.Log(row)
			rows = append(rows, row)
		})
	}
	if len(rows) < len(plantedNames(t)) {
		return // of some defects only
	}
	if err := os.WriteFile(plantedPage, []byte(plantedHead+strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
		t.Error(err)
	}
}

const plantedHead = `# Defects that are planted in a real sidecar

<!-- Written by 'make planted'. -->

A search that finds nothing proves something only if it would have found a defect. So the reference
is built with the tag ` + "`planted`" + `, with one defect at a time (proxy/sidecar/planted.go), and ` +
	"`skewproof\nexplore --backend local --subject reference --until-new`" + ` looks for it, from the first seed. The
numbers are schedules on real servers of v1.36.3 and v1.37.1. They are of one run; timing decides
which requests meet a fault, so another run may take some more.

| defect | found after schedules | invariant |
|---|---|---|
`

// plantedNames reads the names of the defects from the source, which this build does not contain.
func plantedNames(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("../../proxy/sidecar/planted.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z-]+)":\s+{`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, m[1])
	}
	return names
}

// There are at least ten defects, and the page, if there is one, has a row for each.
func TestThePageOfPlantedDefectsHasEachOfThem(t *testing.T) {
	names := plantedNames(t)
	if len(names) < 10 {
		t.Errorf("%d defects are planted, want at least 10: %q", len(names), names)
	}
	page, err := os.ReadFile(plantedPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "\n| "+name+" |") {
			t.Errorf("%s has no row for %s; 'make planted' writes it", plantedPage, name)
		}
	}
	if rows := strings.Count(string(page), "\n| ") - 1; rows != len(names) {
		t.Errorf("%s has %d rows for %d defects", plantedPage, rows, len(names))
	}
}
