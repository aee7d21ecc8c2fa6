package reports

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skewproof/skewproof/internal/golden"
	"github.com/skewproof/skewproof/internal/invariant"
)

const (
	held     = invariant.OutcomePass
	violated = invariant.OutcomeFail
	unsaid   = invariant.OutcomeInconclusive
)

// smallParity has a pair that agrees, one with a known disagreement, one with an unknown one as
// well, and one that was not compared.
func smallParity() Parity {
	pair := func(scenario string, local, sim []invariant.Outcome, whys ...string) ParityPair {
		p := ParityPair{Scenario: scenario, Subject: "builtin", From: "v1.36.3", To: "v1.37.1", Local: local, Sim: sim,
			LocalDirectory: scenario + "-builtin-local", SimDirectory: scenario + "-builtin-sim"}
		for n, d := range p.disagreements(columnsForTests()) {
			p.Disagreements = append(p.Disagreements, ParityDisagreement{d, whys[n]})
		}
		return p
	}
	p := Parity{
		TypeMeta: OfKind(ParityKind), Invariants: columnsForTests(),
		Metadata: ParityMetadata{Made: Made{time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC), 480, "v0.1.0"},
			Tested: testedForTests()},
		Pairs: []ParityPair{
			pair("quiet", []invariant.Outcome{held, held, unsaid}, []invariant.Outcome{held, held, unsaid}),
			pair("crash-loop", []invariant.Outcome{violated, held, held}, []invariant.Outcome{violated, violated, held}, "Chance decides."),
			pair("peer-crash", []invariant.Outcome{held, unsaid, held}, []invariant.Outcome{violated, held, held}, "", "No events."),
			{Scenario: "peer-pause", Subject: "builtin", From: "v1.36.3", To: "v1.37.1", NotCompared: "on local: a crashed"},
		},
		Repetition: Repetition{"skewproof parity --causes", []string{"2 CPUs"}},
	}
	p.Pairs[1].Causes = &ParityCauses{Both: 2, OnlyLocal: []string{"NoFalseNotFound: b: 404"}, OnlySim: []string{"Available: c: 503"}}
	p.Result, p.Sentence = p.conclusion()
	return p
}

func columnsForTests() []MatrixInvariant {
	return []MatrixInvariant{
		{"NoFalseNotFound", invariant.GradeCore, "No request is told that a resource does not exist."},
		{"Converges", invariant.GradeCore, "In the end all servers agree."},
		{"Available", invariant.GradeExtended, "No request fails."},
	}
}

func TestParityGolden(t *testing.T) {
	var page, table, junit bytes.Buffer
	if err := WriteParityHTML(&page, smallParity()); err != nil {
		t.Fatal(err)
	}
	if err := WriteParityText(&table, smallParity(), SummaryOptions{Dir: "_out"}); err != nil {
		t.Fatal(err)
	}
	if err := WriteParityJUnit(&junit, smallParity()); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		ParityHTML: page.String(), ParityText: table.String(), "parity-junit.xml": junit.String(),
		"parity-schema.txt": strings.Join(schema(reflect.TypeFor[Parity](), ""), "\n") + "\n",
	} {
		golden.Hold(t, filepath.Join("testdata", name), got)
	}
}

func TestParityRoundTrip(t *testing.T) {
	dir := t.TempDir()
	if err := SaveParity(dir, smallParity()); err != nil {
		t.Fatal(err)
	}
	got, err := ReadParity(filepath.Join(dir, ParityJSON))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(smallParity(), got); diff != "" {
		t.Errorf("read back differently (-written +read):\n%s", diff)
	}
}

func TestParityConclusion(t *testing.T) {
	for name, c := range map[string]struct {
		pairs  []int // of smallParity
		want   Result
		says   string
		ending string
	}{
		"all agree":              {[]int{0}, ResultPassed, "3 of 3 verdicts agree", "\nEvery disagreement is known.\n"},
		"a known disagreement":   {[]int{0, 1}, ResultPassed, "5 of 6 verdicts agree; the reason of every disagreement is known (1)", "\nEvery disagreement is known.\n"},
		"an unknown one":         {[]int{0, 2}, ResultFailed, "4 of 6 verdicts agree; 1 of 2 disagreements not known", "\n1 disagreements are not known: correct the simulator, or explain them in sim/parity/known.json.\n"},
		"one not compared":       {[]int{0, 3}, ResultInconclusive, "3 of 3 verdicts agree; 1 of 2 pairs of runs not compared", "1 of 2 were compared.\n"},
		"unknown, one missing":   {[]int{2, 3}, ResultFailed, "1 of 3 verdicts agree; 1 of 2 disagreements not known; 1 of 2 pairs of runs not compared", "1 of 2 were compared.\n"},
		"nothing compared":       {[]int{3}, ResultInconclusive, "0 of 0 verdicts agree; 1 of 1 pair of runs not compared", "0 of 1 were compared.\n"},
		"nothing was to compare": {nil, ResultInconclusive, "0 of 0 verdicts agree", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pairs []ParityPair
			for _, n := range c.pairs {
				pairs = append(pairs, smallParity().Pairs[n])
			}
			p := NewParity(ParityMetadata{}, pairs)
			if p.Result != c.want || p.Sentence != c.says {
				t.Errorf("%s: %q, want %s: %q", p.Result, p.Sentence, c.want, c.says)
			}
			var b bytes.Buffer
			if err := WriteParityText(&b, p, SummaryOptions{}); err != nil || !strings.HasSuffix(b.String(), c.ending) {
				t.Errorf("the text does not end with %q, error %v:\n%s", c.ending, err, &b)
			}
		})
	}
}

// A pair takes its verdicts from two reports, in the order of the catalogue.
func TestVerdictsOfAPair(t *testing.T) {
	local, sim := small(), small()
	local.Metadata.From, local.Metadata.To = "v1", "v2"
	n := slices.IndexFunc(sim.Invariants, func(i Invariant) bool { return i.Outcome == held })
	d := Disagreement{"quiet", "builtin", "v1", "v2", sim.Invariants[n].Name, held, violated}
	sim.Invariants[n].Outcome = violated
	c := ParityPair{Scenario: "quiet", Subject: "builtin", NotCompared: "not yet"}
	c.SetVerdicts(local, sim, []ParityDisagreement{{d, ""}})
	p := NewParity(ParityMetadata{}, []ParityPair{c})
	if err := p.check(); err != nil || p.Result != ResultFailed || len(c.Local) != len(invariant.All()) {
		t.Errorf("error %v, %+v", err, p)
	}
}

func TestAParityPageShowsDifferencesFirst(t *testing.T) {
	doc := parsed(t, WriteParityHTML, smallParity())
	var order []string
	for _, section := range elements(doc, "section") {
		if hasAttribute(section, "aria-labelledby", "scenarios") {
			for _, head := range elements(elements(section, "tbody")[0], "th") {
				order = append(order, text(head))
			}
		}
	}
	if want := []string{"peer-crash", "crash-loop", "peer-pause", "quiet"}; !slices.Equal(order, want) {
		t.Errorf("the scenarios are in the order %v, want %v", order, want)
	}
	for head, want := range map[string][]string{
		"quiet":      {"builtin", "v1.36.3 → v1.37.1", "3 of 3", "real, simulated", "✓✓pass on both", "✓✓pass on both", "··inconclusive on both"},
		"crash-loop": {"builtin", "v1.36.3 → v1.37.1", "2 of 3", "real, simulated", "✗✗fail on both", "✓≠✗pass on real processes, fail in the simulator, known", "✓✓pass on both"},
		"peer-crash": {"builtin", "v1.36.3 → v1.37.1", "1 of 3", "real, simulated", "✓≠✗pass on real processes, fail in the simulator, not known",
			"·≠✓inconclusive on real processes, pass in the simulator, known", "✓✓pass on both"},
		"peer-pause": {"builtin", "v1.36.3 → v1.37.1", "not compared", "", "not compared"},
	} {
		if got := cellsOf(t, doc, "scenarios", head); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", head, got, want)
		}
	}
	const said = "peer-crash, builtin, v1.36.3 to v1.37.1: NoFalseNotFound is pass on real processes, and fail in the simulator"
	if got, want := cellsOf(t, doc, "disagreements", said), []string{"not known", "NOT KNOWN", "real, simulated"}; !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", said, got, want)
	}
	page := text(doc)
	for _, want := range []string{"Chance decides.", "peer-pause, builtin: on local: a crashed", "2 on both, 1 only on real processes, 1 only in the simulator", "skewproof parity --causes"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// A pair that was not compared passes nowhere.
func TestAPairThatWasNotComparedIsNotGreen(t *testing.T) {
	p := NewParity(ParityMetadata{}, []ParityPair{smallParity().Pairs[3]})
	var b bytes.Buffer
	if err := WriteParityJUnit(&b, p); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `tests="2" failures="1" errors="0" skipped="1"`) || !strings.Contains(b.String(), `not compared: on local: a crashed`) {
		t.Errorf("JUnit:\n%s", &b)
	}
	doc := parsed(t, WriteParityHTML, p)
	for _, n := range elements(elements(doc, "main")[0], "") {
		for _, a := range n.Attr {
			if a.Key == "class" && slices.Contains(strings.Fields(a.Val), "pass") {
				t.Errorf("<%s> of the page is green: %q", n.Data, text(n))
			}
		}
	}
	if page := text(doc); strings.Contains(page, "There is none") || !strings.Contains(page, "No pair of runs was compared.") {
		t.Errorf("the page says:\n%s", page)
	}
}

func TestHostileParitiesStayText(t *testing.T) {
	poisoned := smallParity()
	poison(reflect.ValueOf(&poisoned).Elem(), hostile)
	for i := range poisoned.Pairs[:3] { // these were compared
		poisoned.Pairs[i].NotCompared = ""
	}
	staysText(t, parsed(t, WriteParityHTML, smallParity()), parsed(t, WriteParityHTML, poisoned))
}

// A result cannot be changed by editing one line.
func TestReadParityRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Parity)
		want   string
	}{
		"an altered result":        {func(p *Parity) { p.Result = ResultPassed }, `result is "passed", and its verdicts make it "failed"`},
		"an altered verdict":       {func(p *Parity) { p.Pairs[2].Sim[0] = held }, "pairs[2] (peer-crash, builtin): its disagreements do not follow from its verdicts"},
		"a disagreement left out":  {func(p *Parity) { p.Pairs[2].Disagreements = p.Pairs[2].Disagreements[1:] }, "do not follow"},
		"an altered disagreement":  {func(p *Parity) { p.Pairs[1].Disagreements[0].Sim = unsaid }, "do not follow"},
		"verdicts of what was not": {func(p *Parity) { p.Pairs[3].Local = []invariant.Outcome{held} }, "1 verdicts on real processes and 0 in the simulator: want 0"},
		"too few verdicts":         {func(p *Parity) { p.Pairs[0].Sim = p.Pairs[0].Sim[1:] }, "3 verdicts on real processes and 2 in the simulator: want 3"},
		"no verdict":               {func(p *Parity) { p.Pairs[0].Local, p.Pairs[0].Sim = nil, nil }, "want 3 of each"},
		"an unknown verdict":       {func(p *Parity) { p.Pairs[0].Sim[0] = "maybe" }, `verdict "maybe"`},
		"another kind":             {func(p *Parity) { p.Kind = MatrixKind }, `kind "VersionMatrix"`},
		"another version":          {func(p *Parity) { p.APIVersion = "skewproof/v9" }, `apiVersion "skewproof/v9"`},
		"compared, and no columns": {func(p *Parity) { p.Invariants, p.Pairs = nil, []ParityPair{{Scenario: "quiet"}} }, "there is no invariant"},
	} {
		t.Run(name, func(t *testing.T) {
			p := smallParity()
			c.change(&p)
			var b bytes.Buffer
			if err := writeIndented(&b, p); err != nil {
				t.Fatal(err)
			}
			if _, err := parities.decode(&b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
	for name, c := range map[string]struct{ document, want string }{
		"nothing":          {" \n", "the file is empty: run 'skewproof parity' again"},
		"an unknown field": {`{"apiVersion": "` + APIVersion + `", "kind": "Parity", "colour": "red"}`, "colour"},
	} {
		if _, err := parities.decode(strings.NewReader(c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}
