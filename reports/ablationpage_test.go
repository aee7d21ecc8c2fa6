package reports

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
)

func searchedForTests() SearchSpec {
	return SearchSpec{Policy: "old", Changes: []string{"A.Z=1"}, From: "v1.36.3", To: "v1.37.1", Servers: 3, Resources: 6, Requests: 12}
}

// smallAblation has a switch that removes everything, one that adds, one that is needed, and one
// that does nothing.
func smallAblation() *Ablation {
	return &Ablation{
		TypeMeta: OfKind(AblationKind), SkewproofVersion: "v0.1.0", Inputs: "0123456789abcdef", Spec: searchedForTests(), To: "new",
		Schedules: 1000, FirstSeed: 7, Switches: 3, Complete: true,
		Columns: []AblationColumn{
			{"NoFalseNotFound", invariant.GradeCore, PlainRequest}, {"NoFalseNotFound", invariant.GradeCore, SubresourceRequest},
			{"Converges", invariant.GradeCore, PlainRequest}, {"Available", invariant.GradeExtended, PlainRequest},
		},
		FromCounts: []uint64{100, 400, 8, 0}, ToCounts: []uint64{0, 0, 0, 10},
		Rows: []AblationRow{
			{"A.Keep", "false", "true", []uint64{0, 400, 8, 50}, []uint64{60, 0, 0, 10}},
			{"A.Accept", "application/json", "application/json;g=apidiscovery.k8s.io;v=v2", []uint64{90, 392, 8, 0}, []uint64{0, 0, 0, 9}},
			{"B.None", "1s", "2s", []uint64{100, 400, 8, 0}, []uint64{0, 0, 0, 10}},
		},
	}
}

func smallestForTests() *Smallest {
	return &Smallest{
		TypeMeta: OfKind(SmallestKind), SkewproofVersion: "v0.1.0", Inputs: "0123456789abcdef", Spec: searchedForTests(), To: "new",
		Switches: 3, Schedules: 600, FirstSeed: 1, Scenarios: 2, NotRun: []string{"controller-rollback"},
		Left: []string{"seed 9: Converges", "quiet: Converges"},
		Rows: []SmallestRow{
			{"A.Keep=true", 60, []SmallestCount{{"NoFalseNotFound", 60}}, []string{"quiet"}, Costs{1428, 0, 1, 1.034}},
			{"A.Accept=x", 3, []SmallestCount{{"Converges", 2}}, nil, Costs{0, 0, 1.5, 0.96}},
		},
		Costs: Costs{1428, 0, 1.51, 1},
	}
}

func TestAblationGolden(t *testing.T) {
	var page, set bytes.Buffer
	if err := errors.Join(WriteAblationHTML(&page, smallAblation()), WriteSmallestHTML(&set, smallestForTests())); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		AblationHTML: page.String(), SmallestHTML: set.String(),
		"ablation-schema.txt": strings.Join(schema(reflect.TypeFor[Ablation](), ""), "\n") + "\n",
		"smallest-schema.txt": strings.Join(schema(reflect.TypeFor[Smallest](), ""), "\n") + "\n",
	} {
		golden.Hold(t, filepath.Join("testdata", name), got)
	}
}

func TestAblationRoundTrip(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(WriteAblation(dir, smallAblation()), WriteSmallest(dir, smallestForTests())); err != nil {
		t.Fatal(err)
	}
	a, err := ReadAblation(filepath.Join(dir, AblationJSON))
	if diff := cmp.Diff(smallAblation(), a); diff != "" || err != nil {
		t.Errorf("the ablation is read back differently, error %v (-written +read):\n%s", err, diff)
	}
	s, err := ReadSmallest(filepath.Join(dir, SmallestJSON))
	if diff := cmp.Diff(smallestForTests(), s); diff != "" || err != nil {
		t.Errorf("the smallest set is read back differently, error %v (-written +read):\n%s", err, diff)
	}
}

func TestHostileAblationsStayText(t *testing.T) {
	poisoned, set := smallAblation(), smallestForTests()
	poison(reflect.ValueOf(poisoned).Elem(), hostile)
	poison(reflect.ValueOf(set).Elem(), hostile)
	staysText(t, parsed(t, WriteAblationHTML, smallAblation()), parsed(t, WriteAblationHTML, poisoned))
	staysText(t, parsed(t, WriteSmallestHTML, smallestForTests()), parsed(t, WriteSmallestHTML, set))
}

// cellsOf are the texts of the cells of the row with this head, in the table below the element with
// this id.
func cellsOf(t *testing.T, doc *html.Node, id, head string) (cells []string) {
	t.Helper()
	for _, section := range elements(doc, "section") {
		if !hasAttribute(section, "aria-labelledby", id) {
			continue
		}
		for _, row := range elements(section, "tr") {
			heads := elements(row, "th")
			if len(heads) == 0 || !strings.HasPrefix(text(heads[0]), head) {
				continue
			}
			for _, cell := range elements(row, "td") {
				cells = append(cells, strings.Join(strings.Fields(text(cell)), " "))
			}
			return cells
		}
	}
	t.Fatalf("no row %q in %s", head, id)
	return nil
}

func hasAttribute(n *html.Node, key, value string) bool {
	for _, a := range n.Attr {
		if a.Key == key && a.Val == value {
			return true
		}
	}
	return false
}

func TestAnAblationPageSaysWhichSwitchDoesWhat(t *testing.T) {
	doc := parsed(t, WriteAblationHTML, smallAblation())
	for _, c := range []struct {
		id, head string
		want     []string
	}{
		{"effects", "NoFalseNotFound", []string{"100", "A.Keep=true all, 0 left A.Accept=application/json;g=apidiscovery… 10 %, 90 left", "none", "0", "A.Keep=false 60"}},
		{"effects", "Converges", []string{"8", "none", "none", "0", "none"}},
		{"effects", "Available", []string{"0", "nothing to remove", "A.Keep=true 50", "10", "none"}},
		{"with", "old, A.Z=1 as it is", []string{"100", "400", "8", "0"}},
		{"with", "A.Keep=true", []string{"0", "·unchanged", "·unchanged", "50"}},
		{"without", "A.Keep=false", []string{"60", "·unchanged", "·unchanged", "·unchanged"}},
	} {
		if got := cellsOf(t, doc, c.id, c.head); !cmp.Equal(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.id, c.head, got, c.want)
		}
	}
	page := text(doc)
	for _, want := range []string{
		"old, A.Z=1 has 3 kinds of violations. One switch alone removes all violations of 1 of them. No single switch removes as much as 5 % of the violations of 2.",
		"skewproof ablate --from-policy old --change A.Z=1 --from v1.36.3 --to v1.37.1 --servers 3 --resources 6 --requests 12 --to-policy new --first 7 --seeds 1000",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestTheConclusionOfAnAblation(t *testing.T) {
	for name, c := range map[string]struct {
		from, with []uint64
		want       string
	}{
		"everything removed": {[]uint64{100, 50, 0, 0}, []uint64{0, 0, 0, 0}, "old has 2 kinds of violations. One switch alone removes all violations of 2 of them."},
		"some removed": {[]uint64{100, 50, 8, 0}, []uint64{0, 40, 8, 0},
			"old has 3 kinds of violations. One switch alone removes all violations of 1 of them, and some of 1. No single switch removes as much as 5 % of the violations of 1."},
		"nothing violated": {make([]uint64, 4), make([]uint64, 4), "old violates nothing in these schedules."},
	} {
		a := smallAblation()
		a.Spec.Changes, a.FromCounts, a.Rows, a.Switches = nil, c.from, a.Rows[:1], 1
		a.Rows[0].With = c.with
		if got := a.conclusion(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A switch that was not tried must not look like one that does nothing.
func TestAnAblationPageThatWasEndedEarlySaysSo(t *testing.T) {
	a := smallAblation()
	a.Rows, a.Complete = a.Rows[2:], false
	doc := parsed(t, WriteAblationHTML, a)
	if got := cellsOf(t, doc, "effects", "Converges"); got[1] != "none that was tried" || got[2] != got[1] || got[4] != got[1] {
		t.Errorf("%q", got)
	}
	if page := text(doc); !strings.Contains(page, "ended after 1 of 3 switches") || strings.Contains(page, "No single switch") {
		t.Errorf("the page says:\n%s", page)
	}
	a = &Ablation{Spec: searchedForTests(), To: "new", Switches: 3}
	if page := text(parsed(t, WriteAblationHTML, a)); !strings.Contains(page, "before there was anything to compare") || strings.Contains(page, "violates nothing") {
		t.Errorf("the page of nothing says:\n%s", page)
	}
}

func TestReadAblationRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Ablation)
		want   string
	}{
		"too few rows":     {func(a *Ablation) { a.Rows = a.Rows[1:] }, "2 rows of 3 switches"},
		"too many rows":    {func(a *Ablation) { a.Switches = 1 }, "3 rows of 1 switches"},
		"complete and not": {func(a *Ablation) { a.Complete = false }, "the file was altered"},
		"no such grade":    {func(a *Ablation) { a.Columns[1].Grade = "good" }, `columns[1] has the grade "good"`},
		"no such request":  {func(a *Ablation) { a.Columns[1].Asked = "asked nicely" }, `"asked nicely"`},
		"too few counts":   {func(a *Ablation) { a.ToCounts = a.ToCounts[1:] }, "4 columns, and a list of 3 counts"},
		"too few in a row": {func(a *Ablation) { a.Rows[1].Without = nil }, "4 columns, and a list of 0 counts"},
		"impossible count": {func(a *Ablation) { a.Rows[0].With[0] = 1001 }, "1001 of 1000 schedules"},
	} {
		a := smallAblation()
		c.change(a)
		var b bytes.Buffer
		if err := writeIndented(&b, a); err != nil {
			t.Fatal(err)
		}
		if _, err := ablations.decode(&b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		change func(*Smallest)
		want   string
	}{
		"too many changes":         {func(s *Smallest) { s.Switches = 1 }, "2 changes of 1 switches"},
		"impossible schedules":     {func(s *Smallest) { s.Rows[1].Schedules = 601 }, "rows[1] has 601 of 600 schedules"},
		"impossible violations":    {func(s *Smallest) { s.Rows[1].Violated[0].Schedules = 4 }, "4 of 3 schedules violate Converges"},
		"a document of its like":   {func(s *Smallest) { s.Kind = AblationKind }, `kind "Ablation"`},
		"of a different skewproof": {func(s *Smallest) { s.APIVersion = "skewproof/v9" }, `"skewproof/v9"`},
	} {
		s := smallestForTests()
		c.change(s)
		var b bytes.Buffer
		if err := writeIndented(&b, s); err != nil {
			t.Fatal(err)
		}
		if _, err := smallestSets.decode(&b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

func TestASmallestSetSaysHowToFindItAgain(t *testing.T) {
	s := smallestForTests()
	const command = "skewproof ablate --from-policy old --change A.Z=1 --from v1.36.3 --to v1.37.1 --servers 3 --resources 6 --requests 12 --to-policy new --first 1 --seeds 600 --smallest"
	if got := s.Command(); got != command {
		t.Errorf("%s, want %s", got, command)
	}
	s.Scenarios, s.NotRun = 0, nil
	if got := s.Command(); got != command+" --only-schedules" {
		t.Errorf("without scenarios: %s", got)
	}
}
