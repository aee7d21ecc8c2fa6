package reports

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

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
	holdTables(t, smallAblation())
	holdTables(t, smallestForTests())
	golden.Hold(t, "testdata/ablation-schema.txt", strings.Join(schema(reflect.TypeFor[Ablation](), ""), "\n")+"\n")
	golden.Hold(t, "testdata/smallest-schema.txt", strings.Join(schema(reflect.TypeFor[Smallest](), ""), "\n")+"\n")
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
