package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/binaries"
	"github.com/skewproof/skewproof/reports"
)

// plantedSeeds is how many schedules may look for a planted defect. 0 skips the test.
var plantedSeeds = flag.Int("planted", 0, "look for each defect that is planted in real servers with up to so many real schedules (an hour or so)")

// plantedPage is what the last run of the test came to.
const plantedPage = "../../docs/planted.md"

// A campaign on real servers finds each defect that is planted in the reference. The test writes
// after how many schedules. Rows of defects that -run leaves out stay as they are.
func TestPlantedDefectsInRealServers(t *testing.T) {
	if *plantedSeeds == 0 {
		t.Skip("takes an hour: 'make planted' runs it")
	}
	needsCluster(t)
	rows := plantedRows(t)
	most := uint64(0) // schedules for any of the defects
	for _, name := range plantedNames(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "campaign")
			var output bytes.Buffer
			words := []string{"explore", "--backend", "local", "--subject", "reference", "--seeds", strconv.Itoa(*plantedSeeds), "--until-new",
				"--strict", "--repeats", "0", "--out", dir}
			code := exitCode(t, command(t, &output, append(words, withDefect(t, name)...)...).Run())
			c, err := reports.ReadCampaign(filepath.Join(dir, reports.CampaignJSON))
			if err != nil {
				t.Fatalf("exit code %d: %v\n%s", code, err, &output)
			}
			row := plantedRow(name, fmt.Sprintf("not in %d", c.Schedules), "")
			most = max(most, c.Schedules)
			if i := slices.IndexFunc(c.Findings, func(f reports.CampaignFinding) bool { return f.Finding == 0 && c.Decides(f.Grade) }); i >= 0 {
				row = plantedRow(name, strconv.FormatUint(c.Schedules, 10), c.Findings[i].Invariant)
				t.Log(c.Findings[i].Sentence) // for a person to see that it is because of the defect
			} else {
				t.Errorf("%d schedules did not find it\n%s", c.Schedules, &output)
			}
			t.Log(row)
			rows[name] = row
		})
	}
	t.Run("no-defect", func(t *testing.T) { // otherwise the campaign may have found something else
		r := run(t, "explore", "--backend", "local", "--subject", "reference", "--seeds", strconv.FormatUint(most, 10), "--strict", "--repeats", "0",
			"--out", filepath.Join(t.TempDir(), "campaign"))
		if r.code != pass {
			t.Errorf("exit code %d, want %d\n%s", r.code, pass, r.output)
		}
	})
	page := plantedHead
	for _, name := range plantedNames(t) {
		page += rows[name] + "\n"
	}
	page += plantedTail()
	if err := os.WriteFile(plantedPage, []byte(page), 0o644); err != nil {
		t.Error(err)
	}
}

// withDefect builds servers with a defect in their proxy. It returns the flags of a run that uses
// them.
func withDefect(t *testing.T, name string) (flags []string) {
	t.Helper()
	store := binaries.Store{Dir: t.TempDir(), Planted: name, Progress: os.Stderr}
	for _, version := range []string{newPair.from, newPair.to} {
		b, err := store.Get(t.Context(), binaries.KubeAPIServerReference, version)
		if err != nil {
			t.Fatalf("build a server with a defect: %v", err)
		}
		flags = append(flags, "--binary", string(binaries.KubeAPIServerReference)+"@"+version+"="+b.Path)
	}
	return flags
}

// notLookedFor is the result of a defect that no run of the test has looked for yet.
const notLookedFor = "not looked for yet"

func plantedRow(name, after, invariant string) string {
	if invariant == "" {
		return fmt.Sprintf("| %s | %s | |", name, after)
	}
	return fmt.Sprintf("| %s | %s | %s |", name, after, invariant)
}

// plantedRows returns the rows that the page has, by defect, and rows for the other defects.
func plantedRows(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(plantedPage)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, name := range plantedNames(t) {
		rows[name] = plantedRow(name, notLookedFor, "")
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "| "+name+" |") {
				rows[name] = strings.TrimSuffix(line, "\n")
			}
		}
	}
	return rows
}

const plantedHead = `# Defects that are planted in real servers

<!-- Written by 'make planted'. -->

A search that finds nothing proves something only if it would find a defect. So ` + "`make planted`" + `
builds the reference with one defect at a time (tag ` + "`planted`" + `,
[proxy/apiserver/planted.go](../proxy/apiserver/planted.go)). Then
` + "`skewproof explore --backend local --subject reference --strict --until-new`" + ` searches for this
defect, from the first seed on.

The table shows after how many schedules on real servers (v1.36.3 and v1.37.1) the search found the
defect, and by which invariant. Each number comes from one search, by the version of skewproof of
that time; later versions draw other schedules from the same seeds. Timing decides which requests
meet a fault, so another search may need more schedules. The test also runs schedules without a
defect, as many as the slowest search needed. It fails if they violate an invariant.

| defect | found after schedules | invariant |
|---|---|---|
`

// plantedTail lists the defects that have a scenario.
func plantedTail() string {
	tail := "\nFor other defects there is a scenario, which shows them in one run\n(`TestDefectsInScenarios`, in `make e2e-all`):\n\n"
	for _, defect := range slices.Sorted(maps.Keys(inScenarios)) {
		of := inScenarios[defect]
		tail += fmt.Sprintf("- %s: %s, %s\n", defect, of.scenario, of.invariant)
	}
	return tail
}

// plantedNames reads the names of the defects from the source, which this build does not contain.
func plantedNames(t *testing.T) (names []string) {
	t.Helper()
	source, err := os.ReadFile("../../proxy/apiserver/planted.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z-]+)":\s+{`).FindAllStringSubmatch(string(source), -1) {
		if _, ok := inScenarios[m[1]]; !ok {
			names = append(names, m[1])
		}
	}
	return names
}

// The page has a row for each of at least ten defects. No defect was looked for in vain.
func TestThePageOfPlantedDefectsHasEachOfThem(t *testing.T) {
	page, err := os.ReadFile(plantedPage)
	if err != nil {
		t.Fatal(err)
	}
	names := plantedNames(t)
	if len(names) < 10 {
		t.Errorf("%d defects are planted, want at least 10: %q", len(names), names)
	}
	found := 0
	for _, name := range names {
		row := regexp.MustCompile(`(?m)^\| ` + name + ` \| (?:[1-9][0-9]* \| ([A-Z][A-Za-z]+)|(?:not in [1-9][0-9]*|` + notLookedFor + `) \|) \|$`).FindSubmatch(page)
		switch {
		case row == nil:
			t.Errorf("%s has no row for %s; 'make planted' writes the row", plantedPage, name)
		case len(row[1]) > 0:
			found++
		}
	}
	if found < 10 {
		t.Errorf("%s: %d defects were found, want at least 10", plantedPage, found)
	}
	if !strings.HasSuffix(string(page), plantedTail()) {
		t.Errorf("%s does not end with the defects that have a scenario:\n%s", plantedPage, plantedTail())
	}
	if rows := strings.Count(string(page), "\n| ") - 1; rows != len(names) {
		t.Errorf("%s has %d rows for %d defects", plantedPage, rows, len(names))
	}
}
