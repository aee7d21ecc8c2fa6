package reports

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
)

// TestAblationPage checks the sentences of docs/ablation.md against its tables, because it takes
// hours to generate the tables.
func TestAblationPage(t *testing.T) {
	const path = "../docs/ablation.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, path, readAblation(t, string(page)).page().markdown())
}

// readAblation reads the Markdown of an ablation.
func readAblation(t *testing.T, page string) *Ablation {
	t.Helper()
	a := Ablation{Complete: true}
	lines := strings.Split(page, "\n")
	title := strings.NewReplacer(",", "", ":", "").Replace(lines[2])
	if _, err := fmt.Sscanf(title, "%s → %s %s and %s %d servers %d schedules from seed %d on",
		&a.Spec.Policy, &a.To, &a.Spec.From, &a.Spec.To, &a.Spec.Servers, &a.Schedules, &a.FirstSeed); err != nil {
		t.Fatalf("its title %q: %v", lines[2], err)
	}
	tables := 0
	var base []uint64
	for _, line := range lines {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		name, value, _ := strings.Cut(cells[0], "=")
		switch {
		case strings.HasPrefix(line, "Inputs: "):
			a.Inputs = strings.Trim(strings.TrimPrefix(line, "Inputs: "), ".")
		case !strings.HasPrefix(line, "| "):
		case name == "change":
			tables, base, a.Columns = tables+1, nil, readColumns(cells[1:])
		case base == nil:
			base = readCounts(t, cells[1:], nil)
			if tables == 1 {
				a.FromCounts = base
			} else {
				a.ToCounts = base
			}
		case tables == 1:
			a.Rows = append(a.Rows, AblationRow{Switch: name, ToValue: value, With: readCounts(t, cells[1:], base)})
		default:
			for i := range a.Rows {
				if r := &a.Rows[i]; r.Switch == name {
					r.FromValue, r.Without = value, readCounts(t, cells[1:], base)
				}
			}
		}
	}
	return &a
}

func readColumns(heads []string) (columns []AblationColumn) {
	for _, head := range heads {
		grade := invariant.GradeCore
		if name, extended := strings.CutSuffix(head, " (extended)"); extended {
			head, grade = name, invariant.GradeExtended
		}
		name, asked, _ := strings.Cut(head, ", ")
		columns = append(columns, AblationColumn{Invariant: name, Grade: grade, Asked: RequestKind(asked)})
	}
	return columns
}

func readCounts(t *testing.T, cells []string, base []uint64) (counts []uint64) {
	t.Helper()
	for i, cell := range cells {
		if cell == "·" {
			counts = append(counts, base[i])
			continue
		}
		n, err := strconv.ParseUint(cell, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	return counts
}

func TestWhatAnAblationSays(t *testing.T) {
	a := Ablation{
		Spec: SearchSpec{Policy: "old"}, To: "new", Schedules: 1000, Switches: 1, Complete: true, FromCounts: []uint64{278, 0, 27, 482},
		ToCounts: make([]uint64, 4),
		Columns: []AblationColumn{{Invariant: "Converges"}, {Invariant: "TrueNotFound"}, {Invariant: "Available"},
			{Invariant: "NoFalseNotFound"}},
		Rows: []AblationRow{{Switch: "A.B", FromValue: "false", ToValue: "true", With: []uint64{1, 13, 43, 523}, Without: make([]uint64, 4)}},
	}
	said := strings.Join(a.Findings(), "\n")
	for _, want := range []string{
		"Converges: A.B=true alone, in old, removes more than 99 % of the violations (1 of 278 schedules are left).",
		"TrueNotFound: A.B=true alone, in old, adds to the violations (13 of 1000 schedules, rather than 0).",
		"Available: A.B=true alone, in old, adds to the violations (43 of 1000 schedules, rather than 27).",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "523") {
		t.Errorf("482 and 523 are too much alike to be named:\n%s", said)
	}
}

// A change that was not tried must not look like a change that removes nothing.
func TestAnAblationThatWasEndedEarlySaysSo(t *testing.T) {
	const none, ended = "Converges: no single change of old removes as much as 5 % of the violations in 278 schedules.", ", ended after "
	for name, c := range map[string]struct {
		complete       bool
		switches, rows int
		says, not      []string
	}{
		"complete": {true, 1, 1, []string{none, "from seed 0 on.\n"}, []string{ended}},
		"one of 36": {false, 36, 1, []string{"from seed 0 on, ended after 1 of 36 switches.\n"},
			[]string{"no single change", "What this says"}},
		"none of 1": {false, 1, 0, []string{"from seed 0 on, ended after 0 of 1 switch.\n"},
			[]string{"no single change", "What this says"}},
	} {
		a := Ablation{
			Spec: SearchSpec{Policy: "old"}, To: "new", Schedules: 1000, Switches: c.switches, Complete: c.complete,
			Columns: []AblationColumn{{Invariant: "Converges"}}, FromCounts: []uint64{278}, ToCounts: []uint64{0},
		}
		for range c.rows {
			a.Rows = append(a.Rows, AblationRow{Switch: "A.B", FromValue: "false", ToValue: "true", With: []uint64{278}, Without: []uint64{0}})
		}
		page := a.page().markdown()
		for _, want := range c.says {
			if !strings.Contains(page, want) {
				t.Errorf("%s: it does not say %q:\n%s", name, want, page)
			}
		}
		for _, wrong := range c.not {
			if strings.Contains(page, wrong) {
				t.Errorf("%s: it says %q:\n%s", name, wrong, page)
			}
		}
	}
}

func TestAnAblationIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	if err := SaveTables(dir, &Ablation{}); err != nil {
		t.Fatal(err)
	}
	names := []string{"ablation.txt", "ablation.md", AblationJSON, "ablation.html"}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := SaveTables("/dev/null/there", &Ablation{}); err == nil {
		t.Error("no error where no directory can be")
	}
	blocked := t.TempDir()
	if err := os.MkdirAll(filepath.Join(blocked, "ablation.txt", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := SaveTables(blocked, &Ablation{}); err == nil {
		t.Error("no error where the text cannot be")
	}
	for _, name := range names[1:] {
		if _, err := os.Stat(filepath.Join(blocked, name)); err == nil {
			t.Errorf("%s was written all the same", name)
		}
	}
}

// A rise is named if it is at least a fifth of the violations and at least one of a hundred
// schedules. The test tries both limits.
func TestWhichRisesAreNamed(t *testing.T) {
	for _, c := range []struct {
		schedules, before, after uint64
		want                     bool
	}{
		{1000, 100, 100, false}, {1000, 100, 99, false}, {1000, 0, 0, false},
		{1000, 100, 119, false}, {1000, 100, 120, true}, {1000, 100, 121, true}, // at the limit of a fifth
		{1000, 10, 19, false}, {1000, 10, 20, true}, {1000, 0, 9, false}, {1000, 0, 10, true}, // at the limit of one of a hundred
		{0, 0, 1, true},
	} {
		a := Ablation{Schedules: c.schedules}
		if got := a.rises(c.before, c.after); got != c.want {
			t.Errorf("from %d to %d of %d: %t, want %t", c.before, c.after, c.schedules, got, c.want)
		}
	}
}

func TestShortValues(t *testing.T) {
	for value, want := range map[string]string{
		"":                           "",
		strings.Repeat("ä", 31):      strings.Repeat("ä", 31),
		strings.Repeat("ä", 32):      strings.Repeat("ä", 32),
		strings.Repeat("ä", 33):      strings.Repeat("ä", 31) + "…",
		strings.Repeat("long ", 100): strings.Repeat("long ", 6) + "l…",
	} {
		if got := shortValue(value); got != want {
			t.Errorf("%q becomes %q, want %q", value, got, want)
		}
	}
}
