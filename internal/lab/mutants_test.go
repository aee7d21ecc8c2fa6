package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/skewproof/skewproof/internal/golden"
)

var mutants = flag.String("mutants", "", "try the mutants of the judge, the engine and the run whose names match this regular expression, such "+
	"as . for all; each is compiled")

// mutant is a change of one place of the code that some test must notice.
type mutant struct {
	name, file string
	from, to   string
}

// readMutants reads testdata/mutants.txt: for each mutant a line with "# " and its name, the file,
// and the lines that are removed and added. The text that is removed is in one place of the file.
func readMutants(t *testing.T) (all []mutant) {
	t.Helper()
	content, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq("\n"+string(content), "\n# ") {
		lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
		if len(lines) < 3 {
			continue
		}
		m := mutant{name: lines[0], file: lines[1]}
		var from, to []string
		for _, line := range lines[2:] {
			switch {
			case strings.HasPrefix(line, "-"):
				from = append(from, line[1:])
			case strings.HasPrefix(line, "+"):
				to = append(to, line[1:])
			default:
				t.Fatalf("%s: the line %q begins with neither - nor +", m.name, line)
			}
		}
		m.from, m.to = strings.Join(from, "\n"), strings.Join(to, "\n")
		all = append(all, m)
	}
	return all
}

// TestMutantsOfTheJudge tries the mutants that -mutants names: the tests of their packages must
// fail. The page gets what was found, and keeps what earlier runs found of the others. The number
// of survivors may only fall. Without -mutants the test checks that each mutant still has its place
// in the code, and that the page lists these mutants.
func TestMutantsOfTheJudge(t *testing.T) {
	const page, root = "../../docs/lab/mutants.md", "../.."
	all := readMutants(t)
	mutated := make([]string, len(all))
	for i, m := range all {
		content, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(content), m.from); n != 1 {
			t.Errorf("%s: %s has the text %d times, want once:\n%s", m.name, m.file, n, m.from)
		}
		mutated[i] = strings.Replace(string(content), m.from, m.to, 1)
	}
	if t.Failed() {
		return
	}
	kept, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	killers := map[string]string{}
	for line := range strings.Lines(string(kept)) {
		if cells := strings.Split(strings.TrimSuffix(line, " |\n"), " | "); len(cells) == 3 {
			killers[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	if *mutants != "" {
		chosen := regexp.MustCompile(*mutants)
		var workers errgroup.Group
		workers.SetLimit(2)
		var mu sync.Mutex
		for i, m := range all {
			if !chosen.MatchString(m.name) {
				continue
			}
			workers.Go(func() error {
				by := tryMutant(t, root, m, mutated[i])
				mu.Lock()
				defer mu.Unlock()
				killers[m.name] = by
				return nil
			})
		}
		_ = workers.Wait()
	}
	var b strings.Builder
	survivors := 0
	for _, m := range all {
		by := cmp.Or(killers[m.name], "not tried")
		if by == survives {
			survivors++
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.name, m.file, by)
	}
	note("mutants", len(all), fmt.Sprintf("%d survive", survivors))
	if was := strings.Count(string(kept), "| "+survives+" |"); survivors > was {
		t.Fatalf("%d mutants survive, %d did before", survivors, was)
	}
	golden.Hold(t, page, fmt.Sprintf(mutantsPage, len(all), survivors)+b.String())
}

// survives is in the page if no test notices a mutant.
const survives = "**survives**"

const mutantsPage = `# Mutants of the judge, the engine and the run

Each changes one place of the code by hand, and the tests of its package must notice it. The last
column names the first test that fails. ` + "`make mutants-judge`" + ` compiles and tries each of the %d; %d
survive. With ` + "`-mutants REGEXP`" + ` the test tries only some, and the page keeps what an earlier run
found of the others.

| change | file | noticed by |
|---|---|---|
`

// failed finds the name of the first test that failed.
var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// tryMutant runs the tests of the mutant's package on the changed file, without changing the file
// itself. It returns the first test that fails, as the page names it.
func tryMutant(t *testing.T, root string, m mutant, content string) string {
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Error(err)
		return ""
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	encoded, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err := errors.Join(err, os.WriteFile(changed, []byte(content), 0o600), os.WriteFile(overlay, encoded, 0o600)); err != nil {
		t.Error(err)
		return ""
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-gcflags=all=-dwarf=false", "-vet=off", "-count=1", "-failfast", "-timeout=5m",
		"-overlay", overlay, "./"+filepath.Dir(m.file))
	command.Dir = root
	out, err := command.CombinedOutput()
	switch found := failed.FindSubmatch(out); {
	case err == nil:
		t.Logf("%s: no test notices it", m.name)
		return survives
	case found != nil:
		t.Logf("%s: %s notices it", m.name, found[1])
		return "`" + string(found[1]) + "`"
	default:
		t.Errorf("%s: it cannot be tried: %v\n%s", m.name, err, out)
		return ""
	}
}
